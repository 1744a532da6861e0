"""A study: trials that are drawn by what the trials before came to, run as jobs of a campaign.

The campaign's folder is all there is of it. Before each drawing the sampler is made anew, from the study's seed
and the rows of the trials that have ended; so a study that was killed goes on as if it had not been.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.core.checks import check_integer
from holdfast.core.distribution import install_command
from holdfast.core.errors import InputError, InputTypeError
from holdfast.experiments.campaign import Failure, Standing, run_campaign
from holdfast.experiments.engines.base import Engine
from holdfast.experiments.manifest import Manifest, read_manifest
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.store import RowFolder, Store, row_folder
from holdfast.experiments.tuning.ranges import Range, check_ranges, ranges_for
from holdfast.experiments.tuning.trials import TUNE, median_bars, trial_options, trial_score
from holdfast.files import Entry, replace_json
from holdfast.runs.stopping import StopRequest

__all__ = ["BEST", "Study", "Trial", "drawn_together", "make_study", "read_trials", "run_study"]

BEST = "best.json"
"""The best trial as options that ``train`` takes."""
_ABOUT = "study.json"
_HOPELESS = 5
"""Trials that fail, without any that does not, after which a study is given up."""
_OF_ITS_OWN = ("seed", "checkpoint_every", "keep_checkpoints")
"""Options of a training that are not the user's in a study."""


@dataclass(frozen=True)
class Study:
    """What is tuned, where, and how.

    Attributes:
        setting: What all trials share, as a job's setting has it.
        defaults: The arguments of the first trial: the algorithm's defaults of what is drawn.
        ranges: What the others are drawn from.
        evaluations: Of a training.
        seeds: Trainings of a trial, with the seeds 0..seeds − 1.
        seed: Of the drawing.
        prunes: Whether trials that are behind are stopped.
    """

    setting: Mapping[str, Any]
    defaults: Mapping[str, Any]
    ranges: Mapping[str, Range]
    evaluations: int
    seeds: int
    seed: int
    prunes: bool

    def document(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            **self.setting,
            "ranges": {name: one.document() for name, one in self.ranges.items()},
            "seeds": self.seeds,
            "seed": self.seed,
            "prunes": self.prunes,
        }

    @property
    def mark(self) -> str:
        """Twelve hexadecimal digits by which its trials are known from those of another study."""
        text = json.dumps(self.document(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def experiment(self) -> Experiment:
        """Whose jobs its trials are."""
        what = f"{self.setting['env_label']}, {self.setting['algo']}: {', '.join(self.ranges)}"
        return replace(TUNE, title=f"greedy return, mean of the last fifth of the evaluations; {what}")

    def jobs_of(self, number: int, parameters: Mapping[str, Any], bars: Sequence[float | None]) -> list[Job]:
        """The jobs of a trial, one for each seed."""
        own = {"trial": number, "parameters": dict(parameters), "bars": list(bars), "study": self.mark}
        return TUNE.jobs_of(({**self.setting, **own}, seed) for seed in range(self.seeds))


@dataclass(frozen=True)
class Trial:
    """A trial, as far as it has come.

    Attributes:
        number: From 0, which is the defaults.
        parameters: What was drawn.
        curves: Evaluations of each training that has ended.
        is_pruned: Whether one of them was stopped for being behind.
        problem: What one of them failed with.
        is_over: Whether all of them have ended.
    """

    number: int
    parameters: Mapping[str, Any]
    curves: tuple[tuple[float, ...], ...]
    is_pruned: bool
    problem: str | None
    is_over: bool

    @property
    def score(self) -> float | None:
        """Mean of the last fifth of the evaluations, over its trainings; None unless they came to their end."""
        if not self.is_over or self.is_pruned or self.problem is not None:
            return None
        return float(np.mean([trial_score(curve) for curve in self.curves]))

    @property
    def mean_curve(self) -> list[float]:
        """Evaluations, the mean over its trainings as far as all of them go."""
        shortest = min(map(len, self.curves), default=0)
        return [float(np.mean([curve[at] for curve in self.curves])) for at in range(shortest)]


def make_study(
    options: Mapping[str, Any],
    ranges: Mapping[str, Range | None] | None = None,
    *,
    seeds: int = 1,
    seed: int = 0,
    prunes: bool = True,
) -> Study:
    """The study of an algorithm's arguments.

    Args:
        options: What all trials share, as ``holdfast.runs.train`` takes it.
        ranges: What is drawn, by argument; None for an argument's documented range, and None instead of all for
            every documented range of the algorithm.
        seeds: Trainings of each trial.
        seed: Of the drawing.
        prunes: Whether trials that are behind are stopped.

    Raises:
        ValueError: Options, a range or a number will not do; nothing has been trained.
    """
    from holdfast.runs.options import make_config, named_options
    from holdfast.runs.training import check_agent

    _require_optuna()
    options = named_options(options)
    for name in _OF_ITS_OWN:
        if options.get(name) is not None:
            raise InputError(f"options must not have {name!r}, which a study sets for each of its trainings")
    config = make_config(options)
    check_agent(config)
    algorithm, fixed = config.algorithm, dict(options.get("set") or {})
    fixed |= {name: options[name] for name in ("k_max", "persistences", "decision_cost") if options.get(name)}
    documented = ranges_for(algorithm)
    if ranges is not None and not isinstance(ranges, Mapping):
        raise InputTypeError(
            f"ranges must be a mapping such as {{'gamma': None, 'alpha': Range(0.05, 0.5)}}, not {ranges!r}",
            "ranges",
        )
    if ranges is None:
        same = {"k_max", "persistences"} if {"k_max", "persistences"} & set(fixed) else set()
        drawn = {name: one for name, one in documented.items() if name not in fixed and name not in same}
    else:
        drawn = {name: _documented(documented, name) if one is None else one for name, one in ranges.items()}
    check_ranges(algorithm, drawn, fixed)
    # Of the documented ranges, every value will do.
    _check_ends({**options, "set": fixed}, {name: one for name, one in (ranges or {}).items() if one is not None})
    if config.eval_every == 0:
        raise InputError("eval_every must be at least 1: trials are compared by their evaluations", "eval_every")
    length = config.steps if algorithm.is_deep else config.episodes
    if length is None:
        raise InputError("episodes must be given for a table, so that all trials are evaluated alike", "episodes")
    if config.eval_every > length:
        raise InputError(
            f"eval_every must be at most {length}, the length of a training: trials are compared by evaluations",
            "eval_every",
        )
    known = algorithm.arguments()
    setting = {
        "environment": config.environment,
        "env_kwargs": config.env_kwargs or None,
        "env_label": config.label,
        "algo": algorithm.name,
        "steps": config.steps,
        "episodes": config.episodes,
        "eval_every": config.eval_every,
        "eval_episodes": config.eval_episodes,
        "device": config.device,
        # Only what differs from the default, which is not in the folders of studies from before.
        "n_envs": config.n_envs if config.n_envs != 1 else None,
        "threads": config.threads if config.threads != 1 else None,
        "set": fixed or None,
    }
    return Study(
        {name: value for name, value in setting.items() if value is not None},
        {name: known[name].default for name in drawn},
        drawn,
        length // config.eval_every,
        check_integer("seeds", seeds),
        check_integer("seed", seed, 0),
        prunes,
    )


def _check_ends(options: Mapping[str, Any], ranges: Mapping[str, Range]) -> None:
    """See that agents can be made with what is drawn, before trials fail one after the other."""
    from holdfast.runs.options import make_config
    from holdfast.runs.training import check_agent

    rest = {name: value for name, value in options.items() if name not in options["set"]}
    for name, one in ranges.items():
        for value in one.ends:
            try:
                check_agent(make_config({**rest, "set": {**options["set"], name: value}}))
            except InputError as error:
                # What a value makes of another argument may be another thing with what is drawn for that one.
                if set(error.arguments) <= {name, "set"}:
                    raise InputError(f"range must hold values that {name} can have: {error}", "range") from error


def _documented(documented: Mapping[str, Range], name: str) -> Range:
    if name not in documented:
        raise InputError(
            f"range must say what {name} is drawn from, such as {name}=0.1..1: it has no documented range", "range"
        )
    return documented[name]


def read_trials(folder: Path, study: Study | None = None) -> list[Trial]:
    """The trials in a folder, by number; none where there is no study.

    Args:
        folder: The study's.
        study: Which it must be; None for any.

    Raises:
        ValueError: It holds something else, or another study.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return []
    if manifest.label != TUNE.label:
        raise InputError(f"{folder} holds a campaign of {manifest.what}, not a study: choose another folder")
    if study is not None and any(entry["setting"].get("study") != study.mark for entry in manifest.jobs.values()):
        raise InputError(
            f"{folder} holds another study, with other options, ranges or seeds: choose another folder, or remove "
            "it"
        )
    return _trials(row_folder(folder), manifest)


def _trials(rows: RowFolder, manifest: Manifest) -> list[Trial]:
    by_number: dict[int, list[str]] = {}
    for job_id, entry in manifest.jobs.items():
        by_number.setdefault(int(entry["setting"]["trial"]), []).append(job_id)
    stored = _sound(rows, manifest)
    found = []
    for number, ids in sorted(by_number.items()):
        done = [rows.read(job_id, manifest) for job_id in ids if job_id in stored]
        problems = [manifest.jobs[job_id]["failed"] for job_id in ids if "failed" in manifest.jobs[job_id]]
        found.append(
            Trial(
                number,
                manifest.jobs[ids[0]]["setting"]["parameters"],
                tuple(tuple(part["return"].tolist()) for part in done),
                any(part["pruned"][-1] for part in done),
                problems[0] if problems else None,
                len(done) + len(problems) == len(ids),
            )
        )
    return found


def _sound(rows: RowFolder, manifest: Manifest) -> set[str]:
    """Jobs with rows that can be read; the others, as in every campaign, are to be run again."""
    return {job_id for job_id in rows.stored() if rows.sound_bytes(job_id, manifest) is not None}


def drawn_together(engine: Engine) -> int:
    """How many trials are drawn together, unless somebody says so: as many as an engine runs at the same time.

    Raises:
        ValueError: The engine runs as many as a cluster has room for, which differs from moment to moment, while a
            study that is continued must draw as many as before.
    """
    at_once = getattr(engine, "at_once", 1)
    if at_once is None:
        raise InputError(
            "jobs must be given on a cluster: that many trials are drawn together, and must be when the study is "
            "continued",
            "jobs",
        )
    return int(at_once)


def run_study(
    study: Study,
    folder: Path,
    trials: int,
    engine: Engine,
    *,
    at_once: int = 1,
    resume: bool = False,
    code: str | None = None,
    stop: StopRequest | None = None,
    told: Callable[[Standing], None] = lambda standing: None,
) -> list[Trial]:
    """Draw and run trials until there are as many as asked for, or somebody wants it to stop.

    Args:
        study: What is tuned.
        folder: Its folder.
        trials: How many, with those that are there.
        engine: Where trainings are run; open.
        at_once: Trials that are drawn together, before any of them has ended.
        resume: Whether to go on with a study of which a part is there.
        code: Folder with the user's own modules.
        stop: Whether to stop.
        told: Is told how it stands, several times a second.

    Returns:
        The trials, by number.

    Raises:
        ValueError: The folder will not do, or nothing but failures came of the first trials.
    """
    trials, at_once = check_integer("trials", trials), check_integer("at_once", at_once)
    stop = StopRequest() if stop is None else stop
    done = read_trials(folder, study)
    over = sum(trial.is_over for trial in done)
    if done and not resume and over < trials:
        raise InputError(
            f"{folder} has {over} of {trials} trials: give resume=True to continue it, or choose another folder",
            "resume",
        )

    whole = _Whole(folder, trials * study.seeds, told)
    while not stop:
        _refuse_the_hopeless(done)
        jobs, chosen = _jobs(folder)
        if not chosen:
            width = min(at_once, trials - len(done))
            if width < 1:
                # Killed just before, it may not have been written.
                write_best(study, folder, done)
                break
            bars = _bars(study, done)
            drawn = enumerate(_draw(study, done, width), start=len(done))
            chosen = [job for number, parameters in drawn for job in study.jobs_of(number, parameters, bars)]
            jobs += chosen
        standing = run_campaign(
            study.experiment,
            jobs,
            folder,
            engine,
            chosen=chosen,
            resume=True,
            code=code,
            stop=stop,
            told=whole.note,
        )
        whole.add(standing)
        done = read_trials(folder, study)
        write_best(study, folder, done)
        if standing.is_stopped:
            break
    whole.end()
    return done


class _Whole:
    """How a study stands, of whose jobs a campaign runs a few at a time.

    Args:
        folder: The study's.
        total: Number of jobs, with those that are not drawn yet.
        told: Is told how it stands.
    """

    def __init__(self, folder: Path, total: int, told: Callable[[Standing], None]) -> None:
        self._told = told
        self._failures = _failures(folder)
        done = _n_done(folder)
        # What was over before says nothing about the pace.
        self._standing = Standing(total, before=done + len(self._failures), done=done, failures=self._failures)

    def note(self, part: Standing) -> None:
        """Tell what the jobs of ``part``, which are being run, come to together with those before."""
        standing = self._standing
        standing.total = max(standing.total, part.others + part.total)
        standing.done = part.others + part.done
        standing.running, standing.failures = part.running, [*self._failures, *part.failures]
        self._told(standing)

    def add(self, part: Standing) -> None:
        """The jobs of ``part`` are over."""
        self.note(part)
        self._failures = self._standing.failures

    def end(self) -> None:
        """Nothing more is run."""
        self._standing.running, self._standing.ended = {}, time.monotonic()


def _n_done(folder: Path) -> int:
    manifest = read_manifest(folder)
    return 0 if manifest is None else len(_sound(Store(folder), manifest) & set(manifest.jobs))


def _failures(folder: Path) -> list[Failure]:
    """Jobs that have failed before."""
    manifest = read_manifest(folder)
    if manifest is None:
        return []
    return [
        Failure(
            Job(manifest.study, entry["setting"], entry["seed"], manifest.revision),
            str(entry["failed"]),
            Store(folder).log_of(job_id),
        )
        for job_id, entry in manifest.jobs.items()
        if "failed" in entry
    ]


def _jobs(folder: Path) -> tuple[list[Job], list[Job]]:
    """The jobs of all trials that were drawn, and those of them that have neither rows nor failed."""
    manifest = read_manifest(folder)
    if manifest is None:
        return [], []
    stored, jobs, left = _sound(Store(folder), manifest), [], []
    for job_id, entry in manifest.jobs.items():
        jobs.append(Job(manifest.study, entry["setting"], entry["seed"], manifest.revision))
        if job_id not in stored and "failed" not in entry:
            left.append(jobs[-1])
    return jobs, left


def _refuse_the_hopeless(done: Sequence[Trial]) -> None:
    failed = [trial for trial in done if trial.problem is not None]
    if len(failed) >= _HOPELESS and len(failed) == len(done):
        raise InputError(
            f"all of the first {len(failed)} trials failed, and are not tried again: fix the cause, then "
            f"choose another folder, or remove it; the last one failed with: {failed[-1].problem}"
        )


def _bars(study: Study, done: Sequence[Trial]) -> list[float | None]:
    """What the next trials are measured by."""
    ended = [trial.mean_curve for trial in done if trial.score is not None]
    return median_bars(ended, study.evaluations) if study.prunes else []


def write_best(study: Study, folder: Path, trials: Sequence[Trial]) -> Path | None:
    """Write the study, and its best trial as options that ``train`` takes; None where no trial has ended well."""
    replace_json(Entry(folder) / _ABOUT, study.document())
    ended = [trial for trial in trials if trial.score is not None]
    if not ended:
        return None
    best = max(ended, key=lambda trial: (trial.score or 0.0, -trial.number))
    replace_json(Entry(folder) / BEST, trial_options({**study.setting, "parameters": best.parameters}))
    return folder / BEST


# Optuna ---------------------------------------------------------------------------------------------------------


def _require_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise InputError(f"tuning needs Optuna, which is not installed: {install_command('tune')}") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _draw(study: Study, done: Sequence[Trial], width: int) -> list[dict[str, Any]]:
    """Arguments of the next trials: the defaults first, then what Optuna's sampler draws."""
    optuna = _require_optuna()
    number = len(done)
    drawn: list[dict[str, Any]] = [dict(study.defaults)] if number == 0 else []
    root = np.random.SeedSequence([study.seed, number]).generate_state(1)
    sampler = optuna.samplers.TPESampler(seed=int(root[0]))
    known = optuna.create_study(direction="maximize", sampler=sampler)
    spaces = {name: _distribution(optuna, one) for name, one in study.ranges.items()}
    for trial in done:
        # What lies outside of the ranges, as defaults may, is nothing that the sampler can learn from.
        if trial.problem is None and all(one.has(trial.parameters[name]) for name, one in study.ranges.items()):
            known.add_trial(_told(optuna, trial, study, spaces))
    while len(drawn) < width:
        asked = known.ask(spaces)
        drawn.append({name: _value(study.ranges[name], asked.params[name]) for name in study.ranges})
    return drawn


def _told(optuna: Any, trial: Trial, study: Study, spaces: Mapping[str, Any]) -> Any:
    state = optuna.trial.TrialState
    return optuna.trial.create_trial(
        state=state.PRUNED if trial.score is None else state.COMPLETE,
        value=trial.score,
        params={name: _sampled(one, trial.parameters[name]) for name, one in study.ranges.items()},
        distributions=dict(spaces),
        intermediate_values=dict(enumerate(trial.mean_curve)),
    )


def _distribution(optuna: Any, one: Range) -> Any:
    kinds = optuna.distributions
    if one.choices:
        return kinds.CategoricalDistribution([json.dumps(value, sort_keys=True) for value in one.choices])
    kind = kinds.IntDistribution if one.is_whole else kinds.FloatDistribution
    return kind(one.low, one.high, log=one.is_log)


def _sampled(one: Range, value: Any) -> Any:
    """A value as Optuna knows it."""
    return json.dumps(value, sort_keys=True) if one.choices else value


def _value(one: Range, sampled: Any) -> Any:
    return json.loads(sampled) if one.choices else sampled
