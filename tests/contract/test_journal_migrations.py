"""Migrations are locked: what a journal was made with never changes behind its back."""

from palyra.store.sqlite_schema import MIGRATIONS

# A number here is final once it has been released. Add a migration; never edit one.
LOCKED = {
    1: "cc6cd14528d99094b303b8a97addb21da334e00a357fb04af6b5a5eac157c906",
    2: "416562a054de60f05db5d7b3a8b6cc367ef82e2c266f870eb662c27c42e299c8",
    3: "3c88e1eef8ed9d4153a429544c903620f1480436b661cbb24749ec93d4c46541",
    4: "f23e885da9081eda4a99d8b6083f66223261f9e1f2a1100c3b9900158f9ef11f",
    5: "f929d1a2ef50c5587ca5a5f25b845c6a887092d37a9534d672381b0ee2c0b9d3",
    6: "3561dbc466db078f8e97e21b2ad3a2342071ef62e67d764b92241ec3786bf610",
    7: "94be750740f8a4a021c447dee65733feccd3948fff91d2d6e1d5921ef81f020a",
    8: "dcc5ad12656c4a6e77beab5ea5d3fc559acf7ec26e600374dd50797ca019d898",
    9: "8c17d665218f7876ed288baf12172eb1af5715d7c74901633a3793128f180609",
    10: "3148138a47efeec9ea41222a0455914e45d8379d8794fd35cdeee900c360a765",
    11: "6f09499ca70dfbf010bf68f4b8e82d89df17a473700160edb0c03bbd3e9fbfb9",
    12: "b66ecc6f02cf854bd5fd164faf1baccbb02a11789f71ba2c8c256879971f09fd",
    13: "6449a3419ff28070a9630640e9fa108d74486a344a5a110e3b04a0166275220c",
    14: "edd71aae0a4ad6454703dece1fa5e8c420e544dc2a20bc5aa1c66563d273dc6f",
    15: "a75fce848bb79922426eb87f0d31c9bc44743a1357f8c5509c420737da6a53c4",
    16: "06ee934b5866d58224a0fcc101cf5209e60a67eb5433c65345f9c9862e28ad14",
    17: "99203eacc20a958ed19872d3cfa02769815718ca4ed39e02ce3e152ea99dd67d",
    18: "6cdd218fc9f4ec2c69063af005c40c7454c04ad6a4d9c216813acf94be2468bf",
    19: "584c8d5ebdab7677b736914a1a450270f141c12437ba013b477498036ad51a91",
    20: "683b18ba3187fa77fad43196877fab6624b77b81428db1ba67033c58bb3b104c",
    21: "9a1d5fe599df1f697d79dec844375c398dcfadd7c65bf8d6452b1bbbae303d6a",
    22: "3c423ee8d6026c02234f661f9a391f80302c5a7eb542603e37aa08093e07efef",
}


def test_every_migration_is_the_one_that_was_locked() -> None:
    assert {migration.number: migration.checksum for migration in MIGRATIONS} == LOCKED


def test_migrations_are_numbered_without_gaps() -> None:
    assert [migration.number for migration in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))
