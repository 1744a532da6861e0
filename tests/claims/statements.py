"""The paper's claims, one by one, in our own words, with what decides each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.claims.car import car_gap, known_from_suite, larger_spread, reaches_optimum, several
from tests.claims.findings import (
    FAILS,
    HOLDS,
    IN_PART,
    UNTESTED,
    Evidence,
    dynamic_against_fixed,
    early_gaps,
    entropy_maxima,
    flag_rates,
    grid_gaps,
    grid_scores,
    kemeny_minima,
    least_time_beyond_one,
    one_step_never_arrives,
    sync_by_k,
    sync_faster,
    visited_cells,
)
from tests.claims.kept import LONG, PRINTED_SETTINGS, RANDOM, ZERO, Kept


@dataclass(frozen=True)
class Proven:
    """A claim that tests keep.

    Attributes:
        claim: In our own words.
        where: In the paper.
        verdict: What the tests show.
        tests: ``file::test``, below tests/.
        note: What else is to be said.
    """

    claim: str
    where: str
    verdict: str
    tests: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class Measured:
    """A claim that committed rows decide.

    Attributes:
        claim: In our own words.
        where: In the paper.
        evidence: What the rows say.
        command: Makes the rows, or finds them.
        rows: Their folder in results/.
        note: What else is to be said.
        known: What is known while there are no rows, from rows of other studies.
    """

    claim: str
    where: str
    evidence: Evidence
    command: str
    rows: str
    note: str = ""
    known: Callable[[Kept], str] = lambda kept: ""


PROVEN = (
    Proven(
        "The all-persistence operator is a γ-contraction in the sup norm.",
        "Theorem `prop:HQ_contraction`, 1",
        HOLDS,
        ("mdp/test_operators.py::TestContraction::test_each_component_contracts",),
        "Component k contracts by γ^min(k,κ), and by no more.",
    ),
    Proven(
        "Its only fixed point is Q*_K, whatever κ is.",
        "Theorem `prop:HQ_contraction`, 2",
        HOLDS,
        (
            "mdp/test_operators.py::TestContraction::test_every_kappa_leads_to_the_same_point",
            "mdp/test_operators.py::TestContraction::test_the_optimum_stays_where_it_is",
        ),
    ),
    Proven(
        "Q*_K never rises with k.",
        "Theorem `prop:HQ_contraction`, 3",
        HOLDS,
        ("mdp/test_operators.py::TestContraction::test_a_longer_hold_is_never_worth_more",),
    ),
    Proven(
        "Q*_K of single steps is the ordinary Q*: persistence costs no optimality and gains none.",
        "Corollary `cor:apx_Qstar_equiv`",
        HOLDS,
        ("mdp/test_solve.py::test_choosing_durations_gains_nothing",),
    ),
    Proven(
        "The reward of a long hold is that of a shorter one plus, from where that leads, the discounted rest.",
        "Lemma `lem:r_k dec`",
        HOLDS,
        ("mdp/test_persistence.py::test_a_longer_hold_is_a_shorter_one_and_the_rest",),
    ),
    Proven(
        "Bootstrapping along the held action leaves the values of any policy over options unchanged.",
        "Appendix `sec:apx proof`, (ii)",
        HOLDS,
        ("mdp/test_operators.py::test_the_values_of_a_policy_solve_its_linear_equations",),
        "Two misprints in the proof ([errata.md](errata.md), 3 and 4).",
    ),
    Proven(
        "PerQ-learning converges to Q*_K.",
        "Section `sec:perq`",
        IN_PART,
        (
            "tabular/test_perq.py::test_it_converges_to_the_exact_values_on_cliff",
            "tabular/test_perq.py::test_it_comes_near_the_exact_values_where_steps_slip",
        ),
        "With deterministic moves it does. If chance ends holds early, the values of long holds stay too high "
        "([errata.md](errata.md), 8).",
    ),
    Proven(
        "Algorithm 1 makes O(K³) updates per option, and PerDQN a number that is linear in K.",
        "Appendix, `fig:tabular_multi`",
        HOLDS,
        (
            "core/test_decomposition.py::test_update_count_is_the_length_and_a_pyramid_number_at_kappa_equal_k_max",
            "core/test_decomposition.py::test_every_buffer_receives_every_step_once",
        ),
        "K(K+1)(2K+1)/6 if κ = K; PerDQN has one tuple for each step and each k.",
    ),
    Proven(
        "Q-learning with K updates per step makes as many updates as PerQ-learning.",
        "Appendix, `fig:tabular_multi`",
        FAILS,
        ("core/test_decomposition.py::test_mean_cost_per_step_with_uniform_kappa",),
        "PerQ-learning makes 6.5, 20.8 and 73.5 per step at K = 4, 8 and 16.",
    ),
    Proven(
        "Kemeny's constant is the sum of 1/(1 − λ) over all eigenvalues but the first.",
        "Proposition `prop:kemeny`",
        HOLDS,
        ("mdp/test_kemeny.py::test_both_ways_agree_with_the_definition",),
    ),
    Proven(
        "The chain of random options cut at a horizon H follows the recursion for P_H.",
        "Equation `eq:P_pers`",
        HOLDS,
        (
            "mdp/test_chains.py::test_it_is_what_following_every_step_gives",
            "mdp/test_chains.py::test_the_example_of_the_paper",
        ),
        "With the order of the matrices corrected ([errata.md](errata.md), 30 and 31).",
    ),
    Proven(
        "V*_k, the first action held for k steps and then the best, is not the optimum of always holding k steps.",
        "Appendix `sec:apx sync`, `fig:sync_val`",
        HOLDS,
        (
            "experiments/figures/test_synchronous_grid.py::test_values_are_those_of_walking_it_through",
            "mdp/test_persistence.py::test_the_optimum_of_always_holding_is_that_of_quantecon",
        ),
    ),
)

_STUDY = "holdfast reproduce {} --scale paper"
_CODE = "holdfast reproduce holdfast.experiments.{} --scale paper"
_PARTS = _CODE.format("tabular_ablation:PARTS")

EXPLORATION = (
    Measured(
        "Random options of up to K steps cross the grids faster: Kemeny's constant is smallest above K = 1, at "
        "a different K on each grid.",
        "`fig:Kemeny`",
        kemeny_minima((30,), differ=True),
        _STUDY.format("Kemeny"),
        "kem_complete",
        "Holes count as walls. If they lead back to the start or are ordinary cells, the minimum is shallower "
        "([exploration.md](exploration.md#holes)).",
    ),
    Measured(
        "For every horizon the constant first falls with K and then rises, because agents get stuck at walls.",
        "`fig:kem_complete`",
        kemeny_minima((10, 20, 30)),
        _STUDY.format("kem_complete"),
        "kem_complete",
    ),
    Measured(
        "Entropy is largest above K = 1 and soon falls steeply.",
        "`fig:kem_complete`",
        entropy_maxima,
        _STUDY.format("kem_complete"),
        "kem_complete",
        "Mean entropy of the rows of P_30, in nats.",
    ),
    Measured(
        "Random single steps usually fail to reach MountainCar's flag.",
        "Section `sec:exps`",
        one_step_never_arrives,
        _STUDY.format("adv_exploration"),
        "adv_exploration",
    ),
    Measured(
        "With a larger K, random options of up to K steps reach the flag more often.",
        "`fig:adv_exploration`",
        flag_rates("adv_exploration", (1, 2, 4, 8, 16, 32, 64)),
        _STUDY.format("adv_exploration"),
        "adv_exploration",
        "Below K = 8 none of 10,000 episodes reached it, so those rates rank nothing.",
    ),
    Measured(
        "They cover a wider region of the state space.",
        "`fig:adv_exploration`",
        visited_cells,
        _STUDY.format("adv_exploration"),
        "adv_exploration",
        "Cells visited in 10,000 episodes.",
    ),
    Measured(
        "A large fixed persistence explores worse than a dynamic one: K = 64.",
        "`fig:adv_exploration_fix`",
        dynamic_against_fixed(64),
        _STUDY.format("adv_exploration_fix"),
        "adv_exploration_fix",
        "At 32 it is the other way round.",
    ),
)

SYNCHRONOUS = (
    Measured(
        "Synchronous PerQ-learning converges faster than Q-learning, although it estimates more values.",
        "`fig:sync`, left",
        sync_faster(),
        _STUDY.format("sync"),
        "sync",
        "On a map of our own ([errata.md](errata.md), 18).",
    ),
    Measured(
        "The larger k, the faster its values converge.",
        "`fig:sync`, right",
        sync_by_k,
        _STUDY.format("sync"),
        "sync",
        "Largest error after 200 iterations.",
    ),
    Measured(
        "Even its values of single steps converge faster than Q-learning's.",
        "`fig:sync`, right",
        sync_faster(1),
        _STUDY.format("sync"),
        "sync",
    ),
)

GRIDS = (
    Measured(
        "PerQ-learning with K = 8 converges faster than with K = 4.",
        "`fig:tabular_perf`, top",
        grid_gaps("PerQ8", "PerQ4"),
        _STUDY.format("tabular_perf"),
        "tabular_study",
    ),
    Measured(
        "K = 16 is slightly better than 8 on Cliff and Bridge, and worse on ZigZag and FrozenLake.",
        "`fig:tabular_perf`, top",
        grid_gaps(
            "PerQ16",
            "PerQ8",
            expected={"cliff": "above", "bridge": "above", "zigzag": "below", "frozen-lake": "below"},
        ),
        _STUDY.format("tabular_perf"),
        "tabular_study",
    ),
    Measured(
        "PerQ-learning (K = 8) is better than Q-learning in all cases.",
        "`fig:tabular_perf`, bottom",
        grid_gaps("PerQ8", "Q", (ZERO, RANDOM, LONG)),
        _PARTS,
        "tabular_ablation",
    ),
    Measured(
        "PerQ-learning (K = 8) is better than TempoRL in all cases.",
        "`fig:tabular_perf`, bottom",
        grid_gaps("PerQ8", "TempoRL8 padded", (ZERO, RANDOM, LONG)),
        _PARTS,
        "tabular_ablation",
        "TempoRL is padded; without padding it fails, contrary to what its own paper shows.",
    ),
    Measured(
        "PerQ-learning (K = 8) is better than TempoRL in all cases, if TempoRL is not padded.",
        "`fig:tabular_perf`, bottom",
        grid_gaps("PerQ8", "TempoRL8"),
        _CODE.format("tabular_study:ALL_LEARNERS"),
        "tabular_study",
        "The other reading of the claim above.",
    ),
    Measured(
        "PerQ-learning improves faster than TempoRL in the first iterations, at every K.",
        "Section `sec:exps`, `fig:tabular_noboot`",
        early_gaps("PerQ{k}", "TempoRL{k} padded", (4, 8, 16)),
        _STUDY.format("tabular_noboot"),
        "tabular_study",
        "Greedy returns in the first tenth of the episodes.",
    ),
    Measured(
        "With large K, TempoRL is more robust: from 8 to 16 PerQ-learning loses more on ZigZag and FrozenLake.",
        "`fig:tabular_noboot`",
        grid_gaps("TempoRL16 padded", "PerQ16", expected={"zigzag": "above", "frozen-lake": "above"}),
        _STUDY.format("tabular_noboot"),
        "tabular_study",
        "TempoRL minus PerQ at K = 16.",
    ),
    Measured(
        "Without the bootstrap (MSA-Q-learning) returns are dramatically worse.",
        "`fig:tabular_noboot`",
        grid_gaps("PerQ8", "MSA8", (ZERO, RANDOM, LONG)),
        _PARTS,
        "tabular_ablation",
        "As printed, durations beyond a terminal state are never updated.",
    ),
    Measured(
        "Without the bootstrap they are worse even if such durations are updated (padded).",
        "`fig:tabular_noboot`",
        grid_gaps("PerQ8", "MSA8 padded", (ZERO, RANDOM, LONG)),
        _PARTS,
        "tabular_ablation",
        "The other reading of the claim above. Where it does not hold, PerQ-learning gains by the padding and not "
        "by the bootstrap on these grids.",
    ),
    Measured(
        "MSA-Q-learning is often worse than Q-learning.",
        "`fig:tabular_noboot`",
        grid_gaps("MSA8", "Q", expected="below"),
        _STUDY.format("tabular_noboot"),
        "tabular_study",
        "“Often” is a claim about some grids; padded, it beats Q-learning on all of them.",
    ),
    Measured(
        "The reason is that durations beyond a wall or an end are never updated: padding fixes it.",
        "`fig:tabular_noboot`",
        grid_gaps("MSA8 padded", "MSA8"),
        _PARTS,
        "tabular_ablation",
    ),
    Measured(
        "Q-learning with K updates per step is not better than with one.",
        "`fig:tabular_multi`",
        grid_gaps("Q x8", "Q", (ZERO, RANDOM), expected="not above"),
        _STUDY.format("tabular_multi"),
        "tabular_multi",
        "From zero values, repeated updates change no sign, so no greedy episode. From random ones they help.",
    ),
    Measured(
        "PerQ-learning stays ahead of Q-learning with the same number of updates.",
        "`fig:tabular_multi`",
        grid_gaps("PerQ8", "Q equal to PerQ8", (ZERO, RANDOM)),
        _STUDY.format("tabular_multi"),
        "tabular_multi",
        "With as many updates as Algorithm 1 makes.",
    ),
    Measured(
        "A run of PerQ-learning takes the least time at some K above 1, on every grid.",
        "`fig:tabular_times`",
        least_time_beyond_one,
        _STUDY.format("tabular_times"),
        "tabular_times",
        "Seconds depend on the machine; K = 1 and the others took turns in one process.",
    ),
    Measured(
        "Initial values N(0, 1) and α = .01 give these curves: an agent learns the grids within 600 episodes "
        "(FrozenLake 6,000).",
        "Appendix `subsec:tabular_details`",
        grid_scores(("PerQ8",), PRINTED_SETTINGS, 0.25),
        _CODE.format("figures.grid_returns:PRINTED"),
        "tabular_perf_as_printed",
        "The mean greedy return of PerQ(8) would have to be above .25. All other rows start from zero or "
        "N(0, .01²), with α = .1.",
    ),
)

_CAR = "holdfast reproduce {} --scale laptop"

CAR = (
    Measured(
        "PerDQN attains the optimal solution on MountainCar.",
        "`fig:mtcar`",
        several(reaches_optimum("PerDQN(8)", True), reaches_optimum("PerDQN(16)", True)),
        _CAR.format("mtcar"),
        "mtcar",
        "Optimal: a greedy return above −110.",
        known_from_suite,
    ),
    Measured(
        "DQN and TempoRL do not converge to the optimal policy.",
        "`fig:mtcar`",
        several(reaches_optimum("DQN", False), reaches_optimum("TempoRL(8)", False)),
        _CAR.format("mtcar"),
        "mtcar",
    ),
    Measured(
        "PerDQN is better than DQN and TempoRL.",
        "`fig:mtcar`",
        several(car_gap("PerDQN(8)", "DQN"), car_gap("PerDQN(8)", "TempoRL(8)")),
        _CAR.format("mtcar"),
        "mtcar",
        known=known_from_suite,
    ),
    Measured(
        "Without the bootstrap (MSA-DQN) performance falls, to about TempoRL's.",
        "`fig:mt_car_2`",
        several(car_gap("PerDQN(8)", "MSA-DQN(8)"), car_gap("MSA-DQN(8)", "TempoRL(8)", "not above")),
        _CAR.format("mt_car_2"),
        "mt_car_2",
    ),
    Measured(
        "Without the bootstrap, the variance over runs is far higher.",
        "`fig:mt_car_2`",
        larger_spread("MSA-DQN(8)", "PerDQN(8)"),
        _CAR.format("mt_car_2"),
        "mt_car_2",
    ),
    Measured(
        "DQN with batches 8 times as large is worse than DQN; with 16 times as large, a little better.",
        "`fig:mtcar_comp`, top",
        several(car_gap("DQN(x8)", "DQN", "not above"), car_gap("DQN(x16)", "DQN")),
        _CAR.format("mtcar_comp"),
        "mtcar_comp",
    ),
    Measured(
        "PerDQN is better than DQN with equally large batches.",
        "`fig:mtcar_comp`, top",
        several(car_gap("PerDQN(8)", "DQN(x8)"), car_gap("PerDQN(16)", "DQN(x16)")),
        _CAR.format("mtcar_comp"),
        "mtcar_comp",
    ),
    Measured(
        "Held exploration alone (εz-greedy) is not enough: PerDQN is better.",
        "`fig:mtcar_comp`, middle",
        several(car_gap("PerDQN(8)", "εz(8)"), car_gap("PerDQN(16)", "εz(16)")),
        _CAR.format("mtcar_comp"),
        "mtcar_comp",
    ),
    Measured(
        "Larger batches help εz-greedy a little, and PerDQN still dominates.",
        "`fig:mtcar_comp`, bottom",
        several(
            car_gap("εz(8x8)", "εz(8)"),
            car_gap("PerDQN(8)", "εz(8x8)"),
            car_gap("PerDQN(16)", "εz(16x16)"),
        ),
        _CAR.format("mtcar_comp"),
        "mtcar_comp",
    ),
)

ATARI = (
    ("In five of six games, PerDQN learns faster than DQN and TempoRL.", "fig:atari"),
    (
        "In some games, such as Kangaroo, PerDQN is as unstable as DQN, apparently by over-estimation.",
        "fig:atari",
    ),
    ("PerDQN dominates its version without the bootstrap in every game.", "fig:atari"),
    ("On Seaquest, persistence is detrimental: DQN is clearly better.", "fig:atari"),
    ("K = 8 improves on K = 4 in few games, slightly on Freeway.", "fig:atariK"),
    (
        "On Freeway, TempoRL is better with skips of 8 than of 4, yet does not converge.",
        "fig:freeway_extended",
    ),
    ("On Freeway, DQN with batches 4 times as large is no better.", "fig:freeway_comp"),
    ("A run takes PerDQN a fifth to a third longer than DQN (Appendix, computing times).", "fig:atari"),
)
"""Claim and figure; a run takes days on a CPU, and there are no rows yet."""

UNTESTED_HERE = f"{UNTESTED} at the paper's scale"
