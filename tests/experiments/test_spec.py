"""Jobs have ids that stay, and experiments plans that are checked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.experiments.figures import LABELS, find_experiment, find_label
from holdfast.experiments.spec import SCALES, Job
from tests.experiments.ladders import LADDER

VALUES = st.one_of(
    st.integers(-5, 5), st.booleans(), st.text(max_size=3), st.floats(allow_nan=False, allow_infinity=False)
)
SETTINGS = st.dictionaries(st.sampled_from(["alpha", "k_max", "rule"]), VALUES)
JOBS = st.builds(Job, st.sampled_from(["fig:a", "fig:b"]), SETTINGS, st.integers(0, 3), st.integers(1, 2))


def test_the_id_is_this_one_for_ever() -> None:
    # printf '{"revision":2,"seed":3,"setting":{"a":[1,2.5],"b":"\u03ba"},"study":"fig:sync"}' | sha256sum
    # (with the backslash and the u as they stand)
    assert Job("fig:sync", {"b": "κ", "a": [1, 2.5]}, seed=3, revision=2).id == "3cb7752d9a7e"


@given(JOBS, JOBS)
def test_other_jobs_have_other_ids(one: Job, other: Job) -> None:
    def parts(job: Job) -> object:
        # 1, 1.0 and True are equal and not the same.
        return job.study, job.seed, job.revision, sorted((k, repr(v)) for k, v in job.setting.items())

    assert (one.id == other.id) == (parts(one) == parts(other))


def test_the_setting_is_the_jobs_own() -> None:
    setting = {"rungs": [1, 2]}
    job = Job("ladder", setting, 0)
    before = job.id
    setting["rungs"].append(3)
    assert job.setting == {"rungs": [1, 2]}
    assert Job("ladder", {"rungs": [1, 2]}, 0).id == before


def test_a_title_has_no_room_for_all_arguments_of_an_algorithm() -> None:
    arguments = {f"argument_{number}": number for number in range(50)}
    assert Job("games", {"k_max": 4, "arguments": arguments}, 2).title == (
        "k_max=4, arguments={'argument_0': 0, 'argument_1': 1, 'a..., seed 2"
    )


@pytest.mark.parametrize(
    ("setting", "seed", "sentence"),
    [
        ({"not a name": 1}, 0, "setting must have Python identifiers as names"),
        ({"rungs": (1, 2)}, 0, "JSON values"),
        ({"rungs": float("nan")}, 0, "JSON values"),
        ({}, -1, "seed must be a whole number of at least 0"),
    ],
)
def test_what_is_no_job_is_refused(setting: dict[str, object], seed: int, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Job("ladder", setting, seed)


def test_plans_are_checked() -> None:
    assert [len(LADDER.jobs(scale)) for scale in SCALES] == [8, 4, 4]
    with pytest.raises(ValueError, match="scale must be one of 'smoke', 'laptop', 'paper', not 'huge'"):
        LADDER.jobs("huge")
    with pytest.raises(ValueError, match="each setting with each seed once"):
        replace(LADDER, plan=lambda scale: [({"rungs": 1}, 0)] * 2).jobs("smoke")
    for name in ("height", "seed"):
        with pytest.raises(ValueError, match=f"name of a column, '{name}'"):
            replace(LADDER, plan=lambda scale, name=name: [({name: 1}, 0)]).jobs("smoke")


@pytest.mark.parametrize("label", LABELS)
def test_every_label_has_an_experiment(label: str) -> None:
    experiment = find_experiment(label)
    assert experiment.label == experiment.reference == label
    for scale in SCALES:
        assert experiment.jobs(scale)
    assert find_label(label.removeprefix("fig:").upper()) == label


def test_unknown_labels_are_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="not 'fig:sinc'; did you mean sync"):
        find_experiment("fig:sinc")
    with pytest.raises(ValueError, match=r"not 'zzzzzz'$"):
        find_label("zzzzzz")


def test_code_that_is_no_experiment_is_refused() -> None:
    with pytest.raises(ValueError, match="importing nowhere_at_all raised ModuleNotFoundError"):
        find_experiment("nowhere_at_all:LADDER")
    with pytest.raises(ValueError, match="'json:dumps' must be a holdfast"):
        find_experiment("json:dumps")
