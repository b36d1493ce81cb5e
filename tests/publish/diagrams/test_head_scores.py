from kvtier.publish.diagrams.head_scores import steps


def test_heat_goes_by_tenth_and_half_of_the_largest_score():
    assert steps([0.001, 0.089, 0.012, 0.0445, 0.0089]) == [0, 2, 1, 2, 1]


def test_heat_compares_over_all_positions():
    assert steps([0.089, 0.003]) == [2, 0]
