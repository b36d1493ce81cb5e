"""The reference against traces worked out by hand, and against a search over all residents with exact scores."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import revision2
from kvtier.simulate.policies import LFU, LRU, Policy, ema

PROPERTY = settings(max_examples=200, derandomize=True, deadline=None, database=None)


def replay(turns, policy, hbm_blocks, cxl_blocks):
    victims = []
    counts = revision2.simulate(turns, policy, hbm_blocks, cxl_blocks, lambda turn, victim: victims.append((turn, victim)))
    return counts, victims


def served(counts):
    """(hits, fetched, recomputed) of each turn."""
    return list(zip(counts.hits.tolist(), counts.fetched.tolist(), counts.recomputed.tolist(), strict=True))


def test_lru_evicts_the_oldest_touch(make_turns):
    counts, victims = replay(make_turns([0, 1, 0, 2, 1], [1, 1, 1]), LRU, 2, 9)
    assert victims == [(3, 1), (4, 0)]
    assert served(counts) == [(0, 0, 1), (0, 0, 1), (1, 0, 0), (0, 0, 1), (0, 1, 0)]


def test_lfu_tie_goes_to_the_lowest_block(make_turns):
    """All three were touched once; 0 goes although 1 is older."""
    _, victims = replay(make_turns([1, 0, 2], [1, 1, 1]), LFU, 2, 9)
    assert victims == [(2, 0)]


def test_a_block_can_be_its_own_victim(make_turns):
    """Under LFU the newcomer's count of 1 is the least: it leaves as it comes, every time."""
    counts, victims = replay(make_turns([0, 1, 0, 1, 2, 2], [1, 1, 1]), LFU, 2, 9)
    assert victims == [(4, 2), (5, 2)]
    assert served(counts)[4:] == [(0, 0, 1), (0, 1, 0)]
    assert counts.evictions_from_read_set.tolist() == [0, 0, 0, 0, 1, 1]


def test_a_run_evicts_its_own_predecessors(make_turns):
    """A context of three in an HBM of two: the last block pushes out the first of the same turn."""
    counts, victims = replay(make_turns([0, 0], [3]), LRU, 2, 9)
    assert victims == [(0, 0), (1, 1)]
    assert served(counts) == [(0, 0, 3), (2, 1, 0)]


def test_eviction_drops_the_count(make_turns):
    counts, victims = replay(make_turns([0, 0, 0, 1, 1, 1, 1], [1, 1]), LFU, 1, 9)
    assert victims == [(3, 1), (4, 1), (5, 1), (6, 1)]
    assert counts.hits.tolist() == [0, 1, 1, 0, 0, 0, 0]


def test_persistence_keeps_the_count(make_turns):
    """Counts 3 and 3 tie at the third visit of session 1; the lower block goes, and the fourth visit hits."""
    counts, victims = replay(make_turns([0, 0, 0, 1, 1, 1, 1], [1, 1]), Policy("lfu", persistent=True), 1, 9)
    assert victims == [(3, 1), (4, 1), (5, 0)]
    assert counts.hits.tolist() == [0, 1, 1, 0, 0, 0, 1]


def test_persistence_keeps_the_decayed_score():
    """At alpha 1/2: touched at 0, evicted, touched again at 3: 1/2 + 1/2 · (1/2 · 1/8) = 17/32; from scratch 1/2."""
    for persistent, score in ((True, 17 / 32), (False, 1 / 2)):
        hbm = revision2.Hbm(ema(0.5, persistent=persistent), 1)
        hbm.admit(0, 0)
        assert hbm.admit(1, 1) == [0]
        hbm.admit(0, 3)
        assert hbm.score[0] == (score, 3)


def test_growth_is_admitted_in_its_turn_and_not_counted(make_turns):
    """47 tokens are two blocks: turn 0 reads one and admits three, so that block 0 leaves at turn 0; turn 1 reads all three."""
    counts, victims = replay(make_turns([0, 0], [1], decode=[47, 15]), LRU, 2, 9)
    assert served(counts) == [(0, 0, 1), (2, 1, 0)]
    assert victims == [(0, 0), (1, 1)]
    assert counts.evictions.tolist() == counts.evictions_from_read_set.tolist() == [1, 1]


def test_own_growth_counts_as_read_set(make_turns):
    """LFU evicts the generated block that has just come; it belongs to the session that the turn serves."""
    counts, victims = replay(make_turns([0, 0], [1], decode=[0, 16]), LFU, 1, 9)
    assert victims == [(1, 1)]
    assert counts.evictions_from_read_set.tolist() == [0, 1]


def test_all_hits_are_touched_before_anything_is_admitted(make_turns):
    """Turn 2 reads 0 (gone) and 1 (oldest resident): 1 is touched first, so what 0 pushes out is 2."""
    _, victims = replay(make_turns([0, 1, 0], [2, 2]), LRU, 3, 9)
    assert victims == [(1, 0), (2, 2)]


def test_fetched_blocks_are_admitted_before_recomputed_ones(make_turns):
    """At turn 2 the CXL tier (one block) has 1 and not 0: 1 comes first and is the older at turn 3."""
    counts, victims = replay(make_turns([0, 1, 0, 1], [2, 2]), LRU, 2, 1)
    assert served(counts) == [(0, 0, 2), (0, 0, 2), (0, 1, 1), (0, 1, 1)]
    assert victims == [(1, 0), (1, 1), (2, 2), (2, 3), (3, 1), (3, 0)]


def test_cxl_keeps_its_copy_of_a_fetched_block(make_turns):
    """CXL holds 0, 1; fetching 1 frees no room, so the eviction of 2 drops 0, the oldest, and 0 is recomputed."""
    counts, _ = replay(make_turns([0, 1, 2, 1, 0], [1, 1, 1]), LRU, 1, 2)
    assert served(counts)[3:] == [(0, 1, 0), (0, 0, 1)]


def test_fetch_does_not_touch_cxl(make_turns):
    """CXL holds 0, 1; 0 is fetched and stays the oldest, so the eviction of 2 drops 0 and not 1, which turn 4 fetches."""
    counts, _ = replay(make_turns([0, 1, 2, 0, 1], [1, 1, 1]), LRU, 1, 2)
    assert served(counts)[3:] == [(0, 1, 0), (0, 1, 0)]


def test_eviction_renews_the_cxl_copy(make_turns):
    """Turn 2 leaves 0, 1 in CXL and 0 in HBM; its second eviction makes 1 the oldest, which the eviction of 2 then drops."""
    counts, _ = replay(make_turns([0, 1, 0, 2, 3, 0, 1], [1, 1, 1, 1]), LRU, 1, 2)
    assert served(counts)[5:] == [(0, 1, 0), (0, 0, 1)]


def test_no_cxl_recomputes_every_miss(make_turns):
    counts, _ = replay(make_turns([0, 1, 0, 1], [1, 1]), LRU, 1, 0)
    assert served(counts) == [(0, 0, 1)] * 4


def test_prefix_is_shared(make_turns):
    counts, _ = replay(make_turns([0, 1, 0], [1, 1], prefix=3), LRU, 9, 0)
    assert served(counts) == [(0, 0, 4), (3, 0, 1), (4, 0, 0)]


@PROPERTY
@given(
    st.sampled_from((0.5, 0.15, 0.01)),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=12),
    st.integers(0, 50),
)
def test_ema_keys_order_as_decayed_scores(alpha, touches, later):
    """Key of the last touch against sum of alpha · (1 − alpha)^(turns since, and touches since), in exact arithmetic."""
    hbm, history, turn = revision2.Hbm(ema(alpha), 99), {}, 0
    for elapsed, block in touches:
        turn += elapsed
        hbm.touch(block, turn)
        history.setdefault(block, []).append(turn)
    weight = Fraction(alpha)

    def decayed(turns):
        return sum(weight * (1 - weight) ** (turn + later - t + len(turns) - 1 - i) for i, t in enumerate(turns))

    scores = {block: decayed(turns) for block, turns in history.items()}
    assert sorted(history, key=lambda b: (scores[b], b)) == sorted(history, key=lambda b: (hbm.key[b], b))


def search(turns, policy, hbm_blocks, cxl_blocks):
    """Revision 2 told again: an exact score for every block, a look at every resident for each victim, CXL as a plain list."""
    weight = None if policy.alpha is None else Fraction(policy.alpha)
    resident, cxl, state, victims, served = set(), [], {}, [], []
    context, clock = turns.context_blocks.tolist(), 0

    def touch(block, turn):
        nonlocal clock
        clock += 1
        score, touched = state.get(block, (Fraction(0), turn))
        if policy.name == "lru":
            score = Fraction(clock)
        elif policy.name == "lfu":
            score += 1
        else:
            score = weight + (1 - weight) * score * (1 - weight) ** (turn - touched)
        state[block] = score, turn

    def worth(block, turn):
        score, touched = state[block]
        return score if weight is None else score * (1 - weight) ** (turn - touched)

    for turn, session in enumerate(turns.session.tolist()):
        start = int(turns.first_block[session])
        end = start + context[session]
        context[session] += int(turns.growth_blocks[turn])
        read = [*range(turns.prefix_blocks), *range(start, end)]
        hits, misses = [b for b in read if b in resident], [b for b in read if b not in resident]
        fetched, recomputed = [b for b in misses if b in cxl], [b for b in misses if b not in cxl]
        served.append((len(hits), len(fetched), len(recomputed)))
        for block in hits:
            touch(block, turn)
        for block in fetched + recomputed + list(range(end, start + context[session])):
            touch(block, turn)
            resident.add(block)
            if len(resident) > hbm_blocks:
                victim = min(resident, key=lambda b: (worth(b, turn), b))
                resident.remove(victim)
                if not policy.persistent:
                    del state[victim]
                cxl = ([b for b in cxl if b != victim] + [victim])[-cxl_blocks:] if cxl_blocks else []
                victims.append((turn, victim))
    return served, victims


@PROPERTY
@given(st.data())
def test_equals_a_search_over_all_residents(workloads, policies, capacities, data):
    turns = data.draw(workloads(most_turns=14, most_sessions=4))
    policy = data.draw(policies(alphas=(0.5, 0.15, 0.01)))
    hbm_blocks, cxl_blocks = data.draw(capacities(turns))
    counts, victims = replay(turns, policy, hbm_blocks, cxl_blocks)
    assert (served(counts), victims) == search(turns, policy, hbm_blocks, cxl_blocks)
