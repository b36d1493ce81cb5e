import pytest

from kvtier.analytic import tiers
from kvtier.units import GB, K_TOKENS, MIB


@pytest.mark.parametrize(("gbps", "us"), [(32, 164), (64, 82), (121, 43)])
def test_published_block_transfer(gbps, us):
    assert round(tiers.block_transfer_us(5 * MIB, gbps)) == us


def test_setup_adds_to_the_transfer():
    assert tiers.block_transfer_us(5 * MIB, 64, setup_us=0.3) == pytest.approx(82.22)


@pytest.mark.parametrize(("mfu", "ms"), [(0.25, 18), (0.40, 11), (0.50, 9)])
def test_published_regeneration(mfu, ms):
    assert round(tiers.regeneration_ms(70 * 10**9, 16, 500, mfu)) == ms


@pytest.mark.parametrize(("peak", "printed"), [(486, False), (487.5, True), (500, True), (511.5, True), (513, False)])
def test_a_range_of_peaks_gives_the_published_times(peak, printed):
    """Any peak from about 487 to 512 TFLOP/s prints 18, 11 and 9 ms: 500 was chosen."""
    times = [round(tiers.regeneration_ms(70 * 10**9, 16, peak, mfu)) for mfu in (0.25, 0.40, 0.50)]
    assert (times == [18, 11, 9]) is printed


@pytest.mark.parametrize(("peak", "printed"), [(499, False), (499.5, True), (500, True), (501.5, True), (502.5, False)])
def test_the_quoted_ratio_narrows_the_peak(peak, printed):
    assert (round(tiers.regeneration_ms(70 * 10**9, 16, peak, 0.25), 1) == 17.9) is printed


def test_linear_flop_is_whole():
    assert tiers.linear_flop(70 * 10**9, 16) == 2_240_000_000_000


def test_published_ratio_is_one_of_rounded_times():
    assert round(tiers.regenerate_over_move(17.9, 82)) == 218
    exact = tiers.regenerate_over_move(tiers.regeneration_ms(70 * 10**9, 16, 500, 0.25), tiers.block_transfer_us(5 * MIB, 64))
    assert exact == pytest.approx(218.75)


def test_least_ratio_is_below_two_orders_of_magnitude():
    assert tiers.regenerate_over_move(tiers.regeneration_ms(70 * 10**9, 16, 500, 0.5), tiers.block_transfer_us(5 * MIB, 32)) < 100


def test_published_strawman(llama):
    assert round(tiers.decode_read_tbps(llama.weight_bytes + llama.kv_bytes(128 * K_TOKENS), 50), 2) == 3.66


@pytest.mark.parametrize(("gbps", "gb", "exact", "whole"), [(32, 0.96, 2929.69, 2929), (121, 3.63, 11077.88, 11077)])
def test_published_prefetch_window(llama, gbps, gb, exact, whole):
    assert tiers.window_bytes(30, gbps) == gb * GB
    positions = tiers.window_positions(30, gbps, llama.kv_bytes_per_token)
    assert round(positions, 2) == exact
    assert int(positions) == whole


def test_published_positions_mix_two_roundings(llama):
    low, high = (tiers.window_positions(30, gbps, llama.kv_bytes_per_token) for gbps in (32, 121))
    assert (int(low), round(high)) == (2929, 11078)
    assert (round(low), int(high)) == (2930, 11077)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tiers.block_transfer_us(1, 0),
        lambda: tiers.block_transfer_us(1, float("nan")),
        lambda: tiers.regeneration_ms(1, 1, 0, 0.5),
        lambda: tiers.regeneration_ms(1, 1, 500, 0),
        lambda: tiers.regeneration_ms(1, 1, 500, 1.1),
        lambda: tiers.regenerate_over_move(1, 0),
        lambda: tiers.window_bytes(-1, 32),
        lambda: tiers.window_positions(30, 32, 0),
        lambda: tiers.decode_read_tbps(1, 0),
    ],
)
def test_impossible_arguments_are_refused(call):
    with pytest.raises(ValueError, match="must be"):
        call()
