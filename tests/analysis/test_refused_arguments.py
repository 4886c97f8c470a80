"""Arguments of a profile's methods that are not shares or addresses."""

import pytest

import perfuse


@pytest.fixture
def profile() -> perfuse.Profile:
    return perfuse.fuse(b"main;work 12\nmain;rest 3\n")


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_is_from_0_to_1(profile: perfuse.Profile, share: float) -> None:
    with pytest.raises(perfuse.UsageError, match="min_share is from 0 to 1"):
        profile.flame().tree(min_share=share)


@pytest.mark.parametrize("address", [-1, 1 << 64])
def test_addresses_have_64_bits(profile: perfuse.Profile, address: int) -> None:
    with pytest.raises(perfuse.UsageError, match="address is from 0 to"):
        profile.object_origins([(5, 0), (address, 0)])
    with pytest.raises(perfuse.UsageError, match="address is from 0 to"):
        profile.code_targets(0, 0, [address])
    with pytest.raises(perfuse.UsageError, match="process_id is from 0 to"):
        profile.code_targets(-1, 0, [5])
