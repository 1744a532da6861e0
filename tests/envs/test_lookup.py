import types
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from holdfast.core.errors import InputError
from holdfast.envs import SHORT_NAMES, GridWorld, grids, is_own_environment, make_env
from holdfast.envs.goal_grid import GoalGrid


@pytest.mark.parametrize("name", [*SHORT_NAMES, "Cliff", "SYNC_GRID", "holdfast/Cliff-v0"])
def test_names_make_environments(name: str) -> None:
    env: Any = make_env(name, step_limit=9)
    assert isinstance(env, gymnasium.Env)
    assert isinstance(env.unwrapped, GridWorld | GoalGrid)
    assert env.unwrapped.step_limit == 9


def test_any_gymnasium_id_will_do() -> None:
    assert make_env("MountainCar-v0").spec.id == "MountainCar-v0"  # type: ignore[union-attr]
    assert make_env("holdfast.envs:holdfast/Open-v0").spec.id == "holdfast/Open-v0"  # type: ignore[union-attr]


def test_a_map_file_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pond"
    path.write_text("S.\n.G\n")
    monkeypatch.chdir(tmp_path)
    for name in ("pond", str(path), path):
        env: Any = make_env(name, slip=0.5)
        assert (str(env.unwrapped.map), env.unwrapped.slip) == ("S.\n.G", 0.5)
    # The spec holds the map itself, not where it lay.
    path.unlink()
    assert str(env.spec.make().unwrapped.map) == "S.\n.G"


def test_a_short_name_wins_over_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cliff").write_text("SG")
    monkeypatch.chdir(tmp_path)
    assert make_env("cliff").unwrapped.map.shape == (6, 10)  # type: ignore[attr-defined]


def sentence_of(name: Any, **kwargs: Any) -> str:
    with pytest.raises(InputError) as caught:
        make_env(name, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_unknown_names_get_suggestions() -> None:
    known = (
        "it must be a Gymnasium id, a map file's path, module:callable, "
        "a game such as atari:Freeway or minatar:Freeway, or one of cliff, bridge, zigzag, open, goal-grid, "
        "sync-grid and frozen-lake"
    )
    assert sentence_of("clif") == f"environment 'clif' is unknown: {known}; did you mean 'cliff'?"
    assert "did you mean 'MountainCar-v0'" in sentence_of("MountainCa-v0")
    assert "did you mean 'CartPole-v1'" in sentence_of("cartpole-v1")
    assert sentence_of("qqqq") == f"environment 'qqqq' is unknown: {known}"
    assert sentence_of("") == f"environment '' is unknown: {known}"
    assert sentence_of("Nowhere/Xyzzy-v3").endswith(
        "is the package that registers 'Nowhere' installed and imported?"
    )
    assert "is unknown" in sentence_of("x" * 5000)


def test_gymnasiums_own_errors_become_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        deprecated = sentence_of("FrozenLake-v0")
    assert caught == []
    assert deprecated == (
        "environment 'FrozenLake-v0' cannot be made: "
        "Environment version v0 for `FrozenLake` is deprecated; please use `FrozenLake-v1` instead"
    )

    def without_dependency(**_: Any) -> gymnasium.Env[Any, Any]:
        raise gymnasium.error.DependencyNotInstalled("Box is missing.\nInstall it.")

    def without_package(**_: Any) -> gymnasium.Env[Any, Any]:
        raise ImportError("No module named 'box'")

    def unwell(**_: Any) -> gymnasium.Env[Any, Any]:
        raise gymnasium.error.Error("it is unwell")

    for name, creator, sentence in [
        ("dependency", without_dependency, "cannot be made: Box is missing; install it"),
        ("package", without_package, "cannot be made because a package is missing: No module named 'box'"),
        ("unwell", unwell, "cannot be made: it is unwell"),
    ]:
        spec = gymnasium.envs.registration.EnvSpec(f"probe/{name}-v0", creator)
        monkeypatch.setitem(gymnasium.registry, spec.id, spec)
        assert sentence_of(spec.id) == f"environment '{spec.id}' {sentence}"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "CartPole-v0",
            "the environment CartPole-v0 is out of date; you should consider upgrading to version `v1`",
        ),
        (
            "CartPole",
            "using the latest versioned environment `CartPole-v1` "
            "instead of the unversioned environment `CartPole`",
        ),
    ],
)
def test_gymnasiums_warnings_become_a_sentence(name: str, sentence: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_env(name)
    assert [(warning.category, str(warning.message)) for warning in caught] == [(UserWarning, sentence)]
    assert caught[0].filename == __file__
    with pytest.raises(UserWarning, match="CartPole"):  # where warnings are errors
        make_env(name)


def test_other_warnings_pass_as_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "stranded.txt").write_text("S#G")
    with pytest.warns(UserWarning, match=r"^the goal in row 0, column 2 .* cannot be reached"):
        make_env(tmp_path / "stranded.txt")

    def odd(**_: Any) -> gymnasium.Env[Any, Any]:
        warnings.warn("an \x1b[1modd\x1b[0m thing. Really.", FutureWarning, stacklevel=1)
        return GridWorld("SG")

    spec = gymnasium.envs.registration.EnvSpec("probe/odd-v0", odd)
    monkeypatch.setitem(gymnasium.registry, spec.id, spec)
    with pytest.warns(FutureWarning) as caught:
        make_env(spec.id)
    assert [str(warning.message) for warning in caught] == ["an \x1b[1modd\x1b[0m thing. Really."]
    with warnings.catch_warnings(record=True) as silent:
        warnings.simplefilter("ignore")
        make_env(spec.id)
    assert silent == []


def test_module_names_are_checked() -> None:
    assert "No module named 'holdfast_no_such'" in sentence_of("holdfast_no_such:Foo-v0")
    for name in ("a:b:c", ":x", "x:"):
        form = "name must have the form 'module:callable' or 'module:id' if it has a colon"
        assert sentence_of(name) == f"{form}, not {name!r}"


MODULE = """
import gymnasium
from holdfast.envs import is_own_environment, make_env

gymnasium.register("FromModule-v0", lambda: make_env("cliff"))

def robot(speed=1):
    env = make_env("cliff")
    env.unwrapped.speed = speed
    return env

def broken():
    raise OSError("no such arm")

def strange():
    return 3

number = 7
"""


def test_modules_of_the_user_make_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_robots.py").write_text(MODULE)
    (tmp_path / "broken_robots.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert make_env("my_robots:robot", speed=5).unwrapped.speed == 5  # type: ignore[attr-defined]
        assert make_env("my_robots:FromModule-v0").reset(seed=0)[0] == 0
        cannot = "cannot be made:"
        for name, sentence in {
            "my_robots:robott": f"{cannot} my_robots has no callable 'robott'; did you mean 'robot'?",
            "my_robots:number": f"{cannot} my_robots has no callable 'number'",
            "my_robots:broken": f"{cannot} broken raised OSError: no such arm",
            "my_robots:strange": "must be a Gymnasium environment, not int",
            "broken_robots:robot": f"{cannot} importing broken_robots raised ZeroDivisionError: division by zero",
        }.items():
            assert sentence_of(name) == f"environment {name!r} {sentence}"
        assert sentence_of("my_robots:robot", weight=1) == "environment 'my_robots:robot' has no argument 'weight'"
    finally:
        del gymnasium.registry["FromModule-v0"]


def test_code_is_known_by_its_name() -> None:
    assert is_own_environment("my_robots:robot")
    assert not any(map(is_own_environment, ("cliff", "CartPole-v1", "holdfast/Cliff-v0", "map.txt")))


def test_wrong_arguments_get_one_sentence() -> None:
    assert sentence_of("cliff", height=3) == "environment 'cliff' has no argument 'height'"
    assert sentence_of("cliff", slip="a") == "slip must be a number in [0, 1], not 'a'"
    assert sentence_of("cliff", slip=2) == "slip must be a number in [0, 1], not 2"
    assert sentence_of("holdfast/Grid-v0") == "environment 'holdfast/Grid-v0' needs the argument 'map'"
    assert sentence_of(3) == "name must be a Gymnasium id, a short name or a map file's path, not 3"


def test_file_errors_pass_through(tmp_path: Path) -> None:
    assert sentence_of("no/such/map.txt") == "map file 'no/such/map.txt' does not exist"
    assert sentence_of(str(tmp_path)).endswith("is a directory, not a text file")


def test_whatever_a_registered_environment_raises_is_a_sentence() -> None:
    class Leave(BaseException):
        pass

    raised: list[BaseException] = [
        KeyError("arm"),
        SystemExit(0),
        GeneratorExit(),
        Leave("now"),
        ValueError("odd"),
    ]

    def failing(**_: Any) -> gymnasium.Env[Any, Any]:
        raise raised[0]

    gymnasium.register("Leaving-v0", failing)
    try:
        while raised:
            said = sentence_of("Leaving-v0")
            name = type(raised.pop(0)).__name__
            assert said.startswith(f"environment 'Leaving-v0' cannot be made: its constructor raised {name}")
    finally:
        del gymnasium.registry["Leaving-v0"]


@pytest.mark.parametrize("space", [None, 3, "Box", [0, 1]])
def test_environments_must_have_spaces(space: Any) -> None:
    class Odd(gymnasium.Env[Any, Any]):
        action_space = gymnasium.spaces.Discrete(2)
        observation_space = space

    gymnasium.register("Odd-v0", Odd, disable_env_checker=True)
    try:
        said = sentence_of("Odd-v0")
        assert said == f"environment 'Odd-v0' must have a Gymnasium space as its observation_space, not {space!r}"
    finally:
        del gymnasium.registry["Odd-v0"]


def test_an_id_that_an_installed_package_registers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are read, and nothing of it is imported."""
    package, about = tmp_path / "far_envs", tmp_path / "far_envs-1.0.dist-info"
    package.mkdir()
    about.mkdir()
    (package / "__init__.py").write_text('raise RuntimeError("imported")\nregister(id="far-away-v0")\n')
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: far-envs\nVersion: 1.0\nRequires-Dist: gymnasium>=1\n"
    )
    (about / "RECORD").write_text("far_envs/__init__.py,,\nfar_envs-1.0.dist-info/METADATA,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match=r"until far_envs is imported: give it as far_envs:far-away-v0$"):
        make_env("far-away-v0")
    with pytest.raises(ValueError, match="is unknown: it must be a Gymnasium id"):
        make_env("farther-away-v0")


@pytest.mark.parametrize(
    ("needs", "code"),
    [
        ("gymnasium>=1", 'status = "far-away-v0"'),
        ("gymnasium>=1; extra == 'learning'", 'register(id="far-away-v0")'),
    ],
    ids=["a word in its code", "an extra"],
)
def test_a_word_in_an_installed_package_is_no_id(
    needs: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "far_tools-1.0.dist-info"
    about.mkdir()
    (tmp_path / "far_tools.py").write_text(code)
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: far-tools\nVersion: 1.0\nRequires-Dist: {needs}\n"
    )
    (about / "RECORD").write_text("far_tools.py,,\nfar_tools-1.0.dist-info/METADATA,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "is unknown: it must be" in sentence_of("far-away-v0")


def test_the_name_of_a_map_is_no_map() -> None:
    with pytest.raises(ValueError, match=r"not its name: holdfast\.envs\.make_env\('cliff'\) makes"):
        GridWorld("cliff")


@pytest.mark.parametrize("error", [KeyError("corner"), TypeError("no"), MemoryError("map")], ids=repr)
def test_faults_of_a_grids_own_constructor_are_not_the_users(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    # As if it stood in holdfast's own code, which is what the place of an exception tells.
    own = types.FunctionType(
        fail.__code__.replace(co_filename=grids.__file__), fail.__globals__, "fail", None, fail.__closure__
    )
    monkeypatch.setattr(grids.GridWorld, "__init__", own)
    with pytest.raises(type(error)) as caught:
        make_env("cliff")
    assert caught.value is error
