"""Client quotas of the image: which of several holds for a client, and whose sensor it bounds."""

import itertools

from odradek.controller.metadata.client_quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    USER,
    ClientQuotas,
    Limit,
    QuotaEntity,
    quota_record,
)
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.loader import difference
from tests.cases import each_case

KEY, OTHER_KEY = PRODUCER_BYTE_RATE, "consumer_byte_rate"
# Each level's entity, for the client (u, c), and whose sensor its quota bounds: first the one that comes before all others.
LEVELS = [
    ({USER: "u", CLIENT_ID: "c"}, ("u", "c")),
    ({USER: "u", CLIENT_ID: None}, ("u", "c")),
    ({USER: "u"}, ("u", "")),
    ({USER: None, CLIENT_ID: "c"}, ("u", "c")),
    ({USER: None, CLIENT_ID: None}, ("u", "c")),
    ({USER: None}, ("u", "")),
    ({CLIENT_ID: "c"}, ("", "c")),
    ({CLIENT_ID: None}, ("", "c")),
]


def put(quotas, names, value, key=KEY):
    quotas.replay(quota_record(QuotaEntity.of(names), key, value))


def quotas_of(*entities, key=KEY):
    quotas = ClientQuotas()
    for names, value in entities:
        put(quotas, names, value, key)
    return quotas


def test_the_most_specific_entity_holds_whatever_others_there_are():
    for chosen in itertools.product((False, True), repeat=len(LEVELS)):
        there = [level for level, is_there in enumerate(chosen) if is_there]
        quotas = quotas_of(*((LEVELS[level][0], float(level)) for level in reversed(there)))
        expected = Limit(float(there[0]), *LEVELS[there[0]][1]) if there else None
        assert quotas.limit(KEY, "u", "c") == expected
        assert quotas.limit(OTHER_KEY, "u", "c") is None


@each_case("level", range(len(LEVELS)))
def test_a_quota_that_is_removed_holds_no_more(level):
    quotas = quotas_of((LEVELS[level][0], 1.0))
    assert not quotas.is_empty(KEY)
    put(quotas, LEVELS[level][0], None)
    assert quotas.is_empty(KEY)
    assert quotas.limit(KEY, "u", "c") is None
    assert not list(quotas)


@each_case("names", [{USER: "v"}, {CLIENT_ID: "d"}, {USER: "u", CLIENT_ID: "d"}, {USER: "v", CLIENT_ID: None}])
def test_others_quotas_do_not_hold(names):
    assert quotas_of((names, 1.0)).limit(KEY, "u", "c") is None


def test_a_client_without_an_id_is_bounded_by_its_users_quotas_alone():
    quotas = quotas_of(({USER: "u", CLIENT_ID: None}, 1.0), ({CLIENT_ID: None}, 2.0))
    assert quotas.limit(KEY, "u", "") is None
    put(quotas, {USER: None}, 3.0)
    assert quotas.limit(KEY, "u", "") == Limit(3.0, "u", "")


def test_rates_of_connections_are_by_address_however_it_is_written_and_by_the_default():
    quotas = quotas_of(({IP: "0:0:0:0:0:0:0:1"}, 1.0), ({IP: "::ffff:10.0.0.1"}, 2.0), key=CONNECTION_CREATION_RATE)
    assert quotas.connection_rates == {"::1": 1.0, "10.0.0.1": 2.0}
    put(quotas, {IP: None}, 3.0, CONNECTION_CREATION_RATE)
    assert quotas.connection_rates == {"::1": 1.0, "10.0.0.1": 2.0, None: 3.0}
    put(quotas, {IP: "0:0:0:0:0:0:0:1"}, None, CONNECTION_CREATION_RATE)
    assert quotas.connection_rates == {"10.0.0.1": 2.0, None: 3.0}


def test_rates_of_connections_bound_no_user():
    quotas = quotas_of(({IP: None}, 1.0), key=CONNECTION_CREATION_RATE)
    assert quotas.is_empty(CONNECTION_CREATION_RATE)


def test_every_change_raises_the_version():
    quotas = ClientQuotas()
    versions = [quotas.version]
    for change in (1.0, 2.0, None):
        put(quotas, {USER: "u"}, change)
        versions.append(quotas.version)
    quotas.become(ClientQuotas())
    versions.append(quotas.version)
    assert versions == sorted(set(versions))


def test_an_image_that_a_snapshot_replaces_keeps_its_quotas_object():
    image, other = MetadataImage(), MetadataImage()
    quotas = image.quotas
    other.replay([quota_record(QuotaEntity.of({USER: "u"}), KEY, 5.0)])
    image.become(other)
    assert image.quotas is quotas
    assert quotas.limit(KEY, "u", "c") == Limit(5.0, "u", "")


def test_an_entity_is_the_same_in_whatever_order_its_parts_stand():
    parts = {USER: "u", CLIENT_ID: None}
    assert QuotaEntity.of(parts) == QuotaEntity.of(dict(reversed(parts.items())))
    assert str(QuotaEntity.of(parts)) == "ClientQuotaEntity(entries={client-id=null, user=u})"


def test_a_snapshot_with_other_quotas_is_told_as_a_change():
    images = [MetadataImage() for _ in range(3)]
    for image, value in zip(images, (5.0, 5.0, 6.0), strict=True):
        image.replay([quota_record(QuotaEntity.of({USER: "u"}), KEY, value)])
    assert [difference(images[0], image).quotas for image in images] == [False, False, True]
    assert difference(images[0], MetadataImage()).quotas
