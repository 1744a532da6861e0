"""The agents of ``examples/own_agents.py``, of at most 30 lines each, do all that those of the list do."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from holdfast.cli import main
from holdfast.deep import OptionActorCritic, PerSAC, PerTD3
from holdfast.experiments.figures import find_experiment
from holdfast.experiments.guests import Guest, check_guests, with_guests
from holdfast.files.folders import find_folders
from holdfast.policies import find_algorithm, load_policy, own_algorithms
from holdfast.runs import find_runs, train
from tests.architecture import ROOT
from tests.runs.kills import contents

EXAMPLE = ROOT / "examples/own_agents.py"
LONGEST = 30

SMALL = (
    "policy_kwargs={'net_arch': [8]}",
    "head_arch=[4]",
    "batch_size=4",
    "learning_starts=20",
    "buffer_size=90",
)
TABLE = ["cliff", "--algo", "own_agents:SmdpQ", "--k-max", "3", "--episodes", "60", "--eval-every", "20"]
NETWORK = [
    *("CartPole-v1", "--algo", "own_agents:ZetaPerDQN", "--k-max", "3", "--steps", "160", "--eval-every", "60"),
    *("--set", *SMALL, "target_update_interval=20", "mu=2"),
]
BOTH = pytest.mark.parametrize("command", [TABLE, NETWORK], ids=["table", "network"])

KILLED = """
import sys
from tests.runs.kills import killed_in
import holdfast.runs.deep_training, holdfast.runs.tabular_training
from holdfast.cli import main
from holdfast.runs import session
session.SHARE_OF_CHECKPOINTS = 1.0
killed_in(int(sys.argv[1]))()
sys.exit(main(sys.argv[2:]))
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder with the example in it, where commands are typed. Modules imported from it are forgotten."""
    shutil.copy(EXAMPLE, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    monkeypatch.delitem(sys.modules, "own_agents", raising=False)
    yield tmp_path
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]


def test_each_agent_has_at_most_thirty_lines() -> None:
    tree = ast.parse(EXAMPLE.read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert [node.name for node in classes] == ["SmdpQ", "ZetaPerDQN"]
    for node in classes:
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        assert (node.end_lineno or 0) - first + 1 <= LONGEST


def run_until_killed(command: list[str], calls: int) -> int:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(calls), "train", *command, "--checkpoint-every", "0.01", "--quiet"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    return done.returncode


@pytest.mark.parametrize(
    "command", [TABLE, pytest.param(NETWORK, marks=pytest.mark.slow)], ids=["table", "network"]
)
def test_it_ends_alike_whether_it_was_killed_or_not(command: list[str], here: Path) -> None:
    assert main(["train", *command, "-o", "whole", "--quiet", "--checkpoint-every", "0.01"]) == 0
    for calls in (40, 45):
        assert run_until_killed([*command, "-o", "killed"], calls) == -signal.SIGKILL
        # Killed between two renames, the last one may have another name.
        assert find_folders(Path("killed/checkpoint"))
    algo = ["--algo", command[2]]
    assert main(["train", "--resume", "killed", *algo, "--quiet"]) == 0
    one, two = contents(Path("whole")), contents(Path("killed"))
    assert [name for name in {*one, *two} if one.get(name) != two.get(name)] == []


@BOTH
def test_it_is_listed_drawn_evaluated_and_exported_without_its_code(
    command: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *command, "-o", "runs/own", "--quiet"]) == 0
    # What follows reads files that name the class, in a process that cannot import it.
    Path("own_agents.py").unlink()
    sys.modules.pop("own_agents", None)
    (found,) = find_runs("runs")
    assert (found.status, found.problem) == ("finished", None)
    assert main(["runs"]) == 0
    assert command[2] in capsys.readouterr().out
    for shown in ("return", "evaluation", "holds"):
        assert main(["plot", "runs/own", "--show", shown, "-o", f"{shown}.png"]) == 0
    assert main(["evaluate", "runs/own", "--episodes", "2", "-o", "pictures", "--json"]) == 0
    assert main(["export", "runs/own", "policy.onnx", "--check", "50"]) == 0
    assert "own_agents" not in sys.modules


SHY = """
from holdfast.deep import Argument, OptionSAC, OptionTD3
from holdfast.deep.arguments import real

SHYNESS = Argument("shyness", 0.1, "float", "What a squared action costs.", real(0.0))

class ShyTD3(OptionTD3):
    added_arguments = (SHYNESS,)
    def _actor_loss(self, observations, proposals):
        return super()._actor_loss(observations, proposals) + self.shyness * proposals.square().mean()

class ShySAC(OptionSAC):
    added_arguments = (SHYNESS,)
    def _actor_loss(self, observations, actions, log_prob):
        return super()._actor_loss(observations, actions, log_prob) + self.shyness * actions.square().mean()
"""


@pytest.mark.parametrize(
    ("own", "kind"), [("ShyTD3", PerTD3), pytest.param("ShySAC", PerSAC, marks=pytest.mark.slow)]
)
def test_an_agent_for_continuous_actions_does_the_same(
    own: str, kind: type[OptionActorCritic], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("shy.py").write_text(SHY, encoding="utf-8")
    sys.path.insert(0, str(here))
    sys.modules.pop("shy", None)
    agent = find_algorithm(f"shy:{own}").load()
    small: dict[str, Any] = {
        "policy_kwargs": {"net_arch": [8]},
        "batch_size": 4,
        "learning_starts": 20,
        "k_max": 3,
    }

    def weights(trained: type[OptionActorCritic], **arguments: Any) -> Any:
        model = trained("MlpPolicy", "Pendulum-v1", seed=0, device="cpu", **small, **arguments).learn(60)
        return torch.cat([part.detach().ravel() for part in model.policy.parameters()])

    theirs = weights(kind)
    assert torch.equal(weights(agent, shyness=0.0), theirs)
    assert not torch.equal(weights(agent, shyness=0.5), theirs)

    named = [f"{name}={value}" for name, value in {**small, "buffer_size": 90}.items()]
    command = [
        "Pendulum-v1",
        "--algo",
        f"shy:{own}",
        "--steps",
        "160",
        "--eval-every",
        "80",
        "--eval-episodes",
        "1",
    ]
    command += ["--set", *named]
    assert main(["train", *command, "-o", "runs/whole", "--quiet", "--checkpoint-every", "0.01"]) == 0
    assert run_until_killed([*command, "-o", "runs/killed"], 40) == -signal.SIGKILL
    assert main(["train", "--resume", "runs/killed", "--algo", f"shy:{own}", "--quiet"]) == 0
    one, two = contents(Path("runs/whole")), contents(Path("runs/killed"))
    assert [name for name in {*one, *two} if one.get(name) != two.get(name)] == []
    Path("shy.py").unlink()
    sys.modules.pop("shy")
    assert {found.status for found in find_runs("runs")} == {"finished"}
    assert main(["evaluate", "runs/killed", "--episodes", "1"]) == 0
    assert main(["export", "runs/killed", "policy.onnx", "--check", "20"]) == 0
    assert "shy" not in sys.modules


def test_a_sweep_compares_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = ["--grid", "algo=perq,own_agents:SmdpQ", "--set", "k_max=3"]
    command = ["sweep", "--env", "cliff", *grid, "--seeds", "1", "--episodes", "20", "--jobs", "1"]
    assert main([*command, "-o", "swept"]) == 0
    assert "algo=own_agents:SmdpQ" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("label", "own", "only"),
    [
        ("tabular_perf", ["own_agents:SmdpQ", "k_max=4"], "agent=SmdpQ(k_max=4)"),
        pytest.param("mtcar", ["own_agents:ZetaPerDQN"], "driver=ZetaPerDQN", marks=pytest.mark.slow),
    ],
)
def test_it_joins_a_figure(
    label: str, own: list[str], only: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["reproduce", label, "--with", *own, "--jobs", "1", "-o", "figure"]
    assert main([*command, "--only", only]) == 0
    assert only.partition("=")[2] in capsys.readouterr().out.partition("\n\n")[2]
    (picture,) = Path("figure").glob("*.png")
    assert picture.stat().st_size > 10_000


def test_a_value_that_an_agent_rejects_is_found_before_any_job() -> None:
    with pytest.raises(ValueError, match=r"alpha must be a number in \(0, 1\], not 5"):
        check_guests([Guest("perq", {"alpha": 5.0})], is_deep=False, beside=())


@pytest.mark.parametrize(
    ("guest", "sentence"),
    [
        (Guest("own_agents:ZetaPerDQN", {"mu": -2.0}), "mu must be a finite number of at least 0, not -2.0"),
        (Guest("perdqn", {"k_max": 0}), "k_max must be a whole number of at least 1, not 0"),
        (Guest("perdqn", {"target_value": "best"}), "target_value must be one of "),
    ],
)
def test_so_is_one_that_a_network_rejects(guest: Guest, sentence: str, here: Path) -> None:
    sys.path.insert(0, str(here))
    with pytest.raises(ValueError, match=sentence):
        with_guests(find_experiment("mtcar"), [guest])


FAILS_WHEN_MADE = """
from own_agents import ZetaPerDQN

class Broken(ZetaPerDQN):
    def _setup_model(self):
        raise KeyError("a key of the agent")
"""


def test_so_is_one_whose_own_code_fails(here: Path) -> None:
    sys.path.insert(0, str(here))
    (here / "failing_agents.py").write_text(FAILS_WHEN_MADE)
    with pytest.raises(ValueError, match="a key of the agent"):
        with_guests(find_experiment("mtcar"), [Guest("failing_agents:Broken")])


def test_a_network_for_other_observations_joins_a_figure(here: Path) -> None:
    network = {"features_extractor_class": "SmallConvolutions", "net_arch": [64]}
    guest = Guest("perdqn", {"policy": "CnnPolicy", "policy_kwargs": network})
    joined = with_guests(find_experiment("minatar"), [guest])
    assert len(joined.jobs("smoke")) > len(find_experiment("minatar").jobs("smoke"))


def test_the_update_is_the_one_of_its_formula(here: Path) -> None:
    sys.path.insert(0, str(here))
    from holdfast import PartialHistory

    learner = find_algorithm("own_agents:SmdpQ").load()(k_max=3, gamma=0.5, falls_by=1.0)
    learner.reset(3, 2)
    learner.q[2] = 4.0
    # Two steps of action 1 from state 0 to state 2: 1 + .5 · 2 + .25 · 4 = 3, and the first visit takes all of it.
    history = PartialHistory(np.array([0, 1, 2]), 1, (1.0, 2.0), False)
    learner.update(history)
    assert learner.q[0, 1].tolist() == [0.0, 3.0, 0.0]
    learner.q[2] = 8.0
    # The second takes half of the way to 1 + 1 + .25 · 8 = 4.
    learner.update(history)
    assert learner.q[0, 1, 1] == 3.5


# What a file names is not imported, and what is none is said so ------------------------------------------------


def test_code_that_only_a_file_names_is_not_imported(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *TABLE, "-o", "run", "--quiet"]) == 0
    Path("own_agents.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    sys.modules.pop("own_agents", None)
    shutil.copy("run/config.json", "again.json")
    for command in (["--resume", "run"], ["--config", "again.json", "-o", "again"]):
        assert main(["train", *command]) == 2
        said = capsys.readouterr().err
        assert said == (
            "holdfast train: --algo own_agents:SmdpQ must be given to run own_agents:SmdpQ: "
            "for safety, code named in a file is never run\n"
        )
    assert "own_agents" not in sys.modules
    assert not Path("again").exists()


def use_broken(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a module ``broken`` with this code."""
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    Path("broken.py").write_text(code, encoding="utf-8")


def check_last_line(sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """See that a command has ended with this sentence."""
    said = capsys.readouterr().err
    assert sentence in said.splitlines()[-1]
    assert "Traceback" not in said


BROKEN = """
from dataclasses import dataclass
from typing import final
from holdfast.deep import OptionValueDQN, PerDQN, PerTD3, Views
from holdfast.tabular import GreedyPolicy, Policy, QLearning, TabularLearner

class NoAgent: ...
number = 3
class Unfinished(TabularLearner): ...
class OfAFinalOne(PerDQN): ...
class OfAnotherFinalOne(QLearning): ...
class OfAFinalActor(PerTD3): ...
class OtherTargets(OptionValueDQN):
    views = property(lambda self: Views(1))
    def _random_durations(self, n): ...
    def _fresh_targets(self, batch): ...

class Base(TabularLearner):
    def table_depths(self): return {"q": 1}
    def rule(self): return self.make_rule((1,), updates_per_step=1.0)
    def policy_of(self, tables): return GreedyPolicy(tables["q"])

@dataclass(kw_only=True, eq=False)
class NoKind(Base):
    bonus: object = None

class OwnConstructor(Base):
    def __init__(self, **keywords): super().__init__(**keywords)

class OwnPolicy(Base):
    def policy_of(self, tables):
        class Strange(Policy):
            table = property(lambda self: tables["q"])
            def options(self, states=slice(None)): ...
            def interrupts(self, state, option): ...
        return Strange()

class Failing(Base):
    def learn(self, tables, option):
        tables["missing"]

class Misusing(Base):
    def learn(self, tables, option):
        GreedyPolicy(tables["q"], nonsense=1)

class OtherField(Base):
    def rule(self): return self.make_rule((1,), falls=True)

class NoRule(Base):
    def rule(self): return None

class NoTables(Base):
    def table_depths(self): return 1

class NoQ(Base):
    def table_depths(self): return {"values": 1}

class EmptyTable(Base):
    def table_depths(self): return {"q": 0}

class TooDeep(Base):
    def table_depths(self): return {"q": 20}

class TooFlat(Base):
    def rule(self): return self.make_rule((1, 2, 3), bootstraps=True)

class ShortSkips(Base):
    def table_depths(self): return {"q": 1, "skip_values": 2}
    def rule(self): return self.make_rule((1, 2, 3), updates_per_step=1.0)

class Falling(Base):
    def rule(self): return self.make_rule((4, 1), updates_per_step=1.0)

class Timeless(Base):
    def rule(self): return self.make_rule((0, 1), updates_per_step=1.0)

class Endless(Base):
    def rule(self): return self.make_rule((1,), updates_per_step=float("inf"))
"""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("NoAgent", "algo 'broken:NoAgent' must be a subclass of holdfast.tabular.TabularLearner"),
        ("number", "algo 'broken:number' cannot be used: broken has no class 'number'"),
        ("NoAgemt", "broken has no class 'NoAgemt'; did you mean NoAgent?"),
        ("Unfinished", "Unfinished must define policy_of, rule, table_depths"),
        (
            "OfAFinalOne",
            "must not be a subclass of PerDQN, which is final: derive it from holdfast.deep.OptionValueDQN",
        ),
        (
            "OfAFinalActor",
            "must not be a subclass of PerTD3, which is final: derive it from holdfast.deep.OptionTD3",
        ),
        ("OfAnotherFinalOne", "must not be a subclass of QLearning, which is final"),
        ("OtherTargets", "must not define _fresh_targets, which is final in OptionValueDQN"),
        ("NoKind", "must give its argument bonus a default and an annotation"),
        ("OwnConstructor", "its arguments are given as fields of a dataclass"),
        ("OwnPolicy", "policy_of must return a GreedyPolicy or a SkipPolicy"),
        ("Failing", "algo 'broken:Failing' failed at step 0: KeyError: 'missing' (broken.py, line 40)"),
        ("Misusing", "unexpected keyword argument 'nonsense' (broken.py, line 44)"),
        ("OtherField", "make_rule has no field 'falls': it may be given updates_per_step, n_valued, "),
        ("NoRule", "rule must return a LearningRule, as make_rule makes it, not NoneType"),
        ("NoTables", "table_depths must return the depths of tables by name, one of them 'q'"),
        ("NoQ", "table_depths must return the depths of tables by name, one of them 'q'"),
        ("EmptyTable", "the depth of 'q' in table_depths must be a whole number of at least 1, not 0"),
        ("TooDeep", "the depth of 'q' in table_depths must be 1, the number of the rule's durations, not 20"),
        ("TooFlat", "the depth of 'q' in table_depths must be 3, the number of the rule's durations, not 1"),
        ("ShortSkips", "the depth of 'skip_values' in table_depths must be K for a rule with the durations 1..K"),
        ("Falling", "the durations of rule must increase, as 1, 2, 4 do, not [4, 1]"),
        ("Timeless", "each duration of rule must be a whole number of at least 1, not 0"),
        ("Endless", "updates_per_step of rule must be a finite number of at least 0, not inf"),
    ],
)
def test_what_is_no_agent_is_one_sentence(
    name: str, sentence: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_broken(BROKEN, monkeypatch)
    assert main(["train", "cliff", "--algo", f"broken:{name}", "-o", "run", "--episodes", "3"]) == 2
    check_last_line(sentence, capsys)
    assert Path("run").exists() == ("failed at step" in sentence or "broken.py" in sentence)


BROKEN_NETWORK = """
from holdfast.deep import Argument, OptionValueDQN, Views
from holdfast.deep.arguments import real

class Base(OptionValueDQN):
    views = property(lambda self: Views(1))
    def _random_durations(self, n):
        return [1] * n

class Failing(Base):
    @property
    def views(self):
        raise KeyError("views")

class Dividing(Base):
    def _mean_random_hold(self):
        return 1 / 0

class LaterFailing(Base):
    def _random_durations(self, n):
        return self.nothing

class Stubborn(Base):
    stands_for = {"train_freq": 4, "tau": 0.5}
"""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Failing", "algo 'broken:Failing' cannot be made: KeyError: 'views' (broken.py, line 13)"),
        ("Dividing", "'broken:Dividing' cannot be made: ZeroDivisionError: division by zero (broken.py, line 17)"),
        ("LaterFailing", "algo 'broken:LaterFailing' failed at step 0: AttributeError: "),
        ("Stubborn", "algo 'broken:Stubborn' must not have train_freq in stands_for: every run sets its own"),
    ],
)
def test_what_a_network_does_wrong_is_one_sentence_with_its_place(
    name: str, sentence: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_broken(BROKEN_NETWORK, monkeypatch)
    assert main(["train", "CartPole-v1", "--algo", f"broken:{name}", "-o", "run", "--steps", "60"]) == 2
    check_last_line(sentence, capsys)


@pytest.mark.parametrize(
    ("added", "sentence"),
    [
        (
            'Argument("mu", 1.0, "float", "µ.")',
            "added_arguments of Own must be a tuple such as (Argument(...),), not",
        ),
        ('("mu",)', "added_arguments of Own must be a tuple such as (Argument(...),), not ('mu',)"),
        ('(Argument("gamma", 1.0, "float", "γ."),)', "must have names of their own, and every agent has 'gamma'"),
    ],
)
def test_arguments_that_are_none_are_one_sentence(
    added: str, sentence: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = "from holdfast.deep import Argument, OptionValueDQN"
    use_broken(f"{imports}\nclass Own(OptionValueDQN):\n    added_arguments = {added}\n", monkeypatch)
    assert main(["train", "CartPole-v1", "--algo", "broken:Own", "--steps", "60"]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_a_module_that_fails_is_one_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("failing_agents.py").write_text("import nothing_like_it\n", encoding="utf-8")
    assert main(["train", "cliff", "--algo", "failing_agents:Mine"]) == 2
    assert capsys.readouterr().err == (
        "holdfast train: algo 'failing_agents:Mine' cannot be used: importing failing_agents raised "
        "ModuleNotFoundError: No module named 'nothing_like_it'\n"
    )
    assert not Path("runs").exists()


def test_an_installed_package_adds_an_algorithm(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    about = here / "own_agents-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own-agents\nVersion: 1.0\n", encoding="utf-8")
    entry = f"[{own_algorithms.GROUP}]\nsmdp-q = own_agents:SmdpQ\n"
    (about / "entry_points.txt").write_text(entry, encoding="utf-8")
    monkeypatch.syspath_prepend(here)
    assert own_algorithms.installed_algorithms()["smdp-q"] == "own_agents:SmdpQ"
    assert main(["train", "cliff", "--algo", "smdp-q", "--episodes", "20", "-o", "runs/own", "--quiet"]) == 0
    # It is installed, so a file may name it.
    assert main(["train", "--resume", "runs/own", "--episodes", "30", "--quiet"]) == 0
    assert json.loads(Path("runs/own/config.json").read_text(encoding="utf-8"))["algo"] == "smdp-q"
    assert main(["train", "--help"]) == 0
    assert "smdp-q" in capsys.readouterr().out
    with pytest.raises(ValueError, match="smdp-q"):
        find_algorithm("smdp-x")
    # Where the package is not installed, its runs are read as those of a class are, and not continued.
    (about / "entry_points.txt").unlink()
    Path("own_agents.py").unlink()
    sys.modules.pop("own_agents")
    assert "smdp-q" not in own_algorithms.installed_algorithms()
    (found,) = find_runs("runs")
    assert (found.status, found.problem) == ("finished", None)
    for command in (["runs"], ["plot", "runs", "-o", "curve.png"], ["evaluate", "runs/own", "--episodes", "2"]):
        assert main(command) == 0
    capsys.readouterr()
    assert main(["train", "--resume", "runs/own", "--episodes", "40"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("holdfast train: ")
    assert "not 'smdp-q'" in said
    assert said.count("\n") == 1


def test_a_program_names_it_as_the_command_line_does(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(here)
    outcome = train({"environment": "cliff", "algo": "own_agents:SmdpQ", "episodes": 30}, "run")
    assert outcome.status == "finished"
    action, hold, values = load_policy("run").decide(0)
    assert values.shape[1] == 8
    assert 1 <= hold <= 8
    assert 0 <= action < len(values)


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs/own_agents.md").read_text(encoding="utf-8")
    assert f"```python\n# own_agents.py\n{EXAMPLE.read_text(encoding='utf-8')}```" in page
