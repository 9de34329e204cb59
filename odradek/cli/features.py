"""``odradek features``: the feature levels of any Kafka cluster (KIP-584, KIP-1022).

A level says which records, requests and protocols a cluster uses. New brokers keep the levels of their directory, so that older
ones can read it. An upgrade raises the levels, and is all or nothing.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click

from odradek.cli.cluster import Cluster, Refused, check
from odradek.cli.feature_levels import METADATA_VERSION, metadata_level, metadata_version, release_levels
from odradek.cli.options import Servers, asks_a_broker, command_group, exit_status, show
from odradek.client.admin_apis import API_VERSIONS, UPDATE_FEATURES
from odradek.protocol.message_types.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.message_types.update_features import FeatureUpdateKey, UpdateFeaturesRequest

Levels = dict[str, int]

_UPGRADE: Final = 1
_SAFE_DOWNGRADE: Final = 2
_UNSAFE_DOWNGRADE: Final = 3
_TIMEOUT_MS: Final = 60_000
_DESCRIBED: Final = ("feature", "level", "lowest", "highest", "metadata_version", "epoch")
_CHANGED: Final = ("feature", "before", "level", "metadata_version")


@command_group()
def features() -> None:
    """Show, raise and lower the feature levels of any Kafka cluster."""


def _feature_and_level(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> Levels:
    levels: Levels = {}
    for each in given:
        name, _, level = each.partition("=")
        if not name or not level.isdecimal():
            raise click.BadParameter(f"{each!r} is not FEATURE=LEVEL, such as group.version=1")
        if name in levels:
            raise click.BadParameter(f"{name} is given twice")
        levels[name] = int(level)
    return levels


def _names_levels(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that name levels, and ``--dry-run``. The command gets ``levels`` and ``is_release``."""

    @wraps(command)
    def named(release_version: str | None, metadata: str | None, levels: Levels, **options: object) -> int:
        if release_version is not None and (metadata is not None or levels):
            raise click.UsageError("--release-version excludes --metadata and --feature")
        try:
            if release_version is not None:
                levels = release_levels(release_version)
            elif metadata is not None:
                levels = {METADATA_VERSION: metadata_level(metadata), **levels}
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        if not levels:
            raise click.UsageError("name the levels: --release-version 4.4, or --feature group.version=1")
        return command(levels=levels, is_release=release_version is not None, **options)

    wrapped: Callable[..., int] = named
    for option in (
        click.option("--dry-run", is_flag=True, help="Only ask whether that is possible."),
        click.option(
            "--feature",
            "levels",
            metavar="FEATURE=LEVEL",
            multiple=True,
            callback=_feature_and_level,
            help="One feature; repeatable.",
        ),
        click.option("--metadata", metavar="VERSION", help="metadata.version by its name, such as 4.4-IV2."),
        click.option("--release-version", metavar="VERSION", help="All features as in a release of Kafka, such as 4.4."),
    ):
        wrapped = option(wrapped)
    return wrapped


@features.command()
@asks_a_broker
def describe(bootstrap: Servers, as_json: bool) -> int:
    """Show each feature's level in the cluster, and the levels that the broker supports."""
    with Cluster(bootstrap) as cluster:
        answer = _asked(cluster)
    now = _finalized(answer)
    ranges = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
    epoch = answer.finalized_features_epoch
    rows = [
        {
            **_row(name, now.get(name, 0)),
            **dict(zip(("lowest", "highest"), ranges.get(name, (None, None)), strict=True)),
            "epoch": epoch if epoch >= 0 else None,
        }
        for name in sorted(ranges.keys() | now.keys())
    ]
    show(_DESCRIBED, rows, as_json=as_json)
    return 0


@features.command()
@asks_a_broker
@_names_levels
def upgrade(levels: Levels, is_release: bool, bootstrap: Servers, as_json: bool, dry_run: bool) -> int:
    """Raise feature levels, all of them or none.

    Do this when all brokers and controllers have been replaced by newer ones: older ones cannot start any more.
    """
    # A release without a feature does not lower it.
    raised = {name: level for name, level in levels.items() if level > 0 or not is_release}
    return _update(raised, _UPGRADE, bootstrap, as_json=as_json, dry_run=dry_run)


@features.command()
@asks_a_broker
@_names_levels
@click.option("--unsafe", is_flag=True, help="Even if metadata is lost, where the controller can do that.")
def downgrade(levels: Levels, bootstrap: Servers, as_json: bool, dry_run: bool, unsafe: bool, **_: object) -> int:
    """Lower feature levels, all of them or none. Level 0 turns a feature off."""
    upgrade_type = _UNSAFE_DOWNGRADE if unsafe else _SAFE_DOWNGRADE
    return _update(levels, upgrade_type, bootstrap, as_json=as_json, dry_run=dry_run)


def _update(levels: Levels, upgrade_type: int, bootstrap: Servers, *, as_json: bool, dry_run: bool) -> int:
    updates = [FeatureUpdateKey(name, level, upgrade_type) for name, level in levels.items()]
    request = UpdateFeaturesRequest(timeout_ms=_TIMEOUT_MS, feature_updates=updates, validate_only=dry_run)
    with Cluster(bootstrap) as cluster:
        before = _finalized(_asked(cluster))
        answer = cluster.controller().call(UPDATE_FEATURES, request)
        check("features", answer.error_code, answer.error_message)
    # Only brokers before Kafka 4.0 have a result for each feature.
    refusals = [Refused(one.feature, one.error_code, one.error_message) for one in answer.results if one.error_code]
    refused = {one.feature for one in answer.results if one.error_code}
    rows = [{**_row(name, level), "before": before.get(name, 0)} for name, level in sorted(levels.items()) if name not in refused]
    if rows or as_json:
        show(_CHANGED, rows, as_json=as_json)
    return exit_status(refusals)


def _asked(cluster: Cluster) -> ApiVersionsResponse:
    # A second ApiVersions needs a client's name as the first one does.
    return cluster.any.call(API_VERSIONS, ApiVersionsRequest(client_software_name="odradek", client_software_version="cli"))


def _finalized(answer: ApiVersionsResponse) -> Levels:
    return {one.name: one.max_version_level for one in answer.finalized_features}


def _row(name: str, level: int) -> dict[str, Any]:
    return {"feature": name, "level": level, "metadata_version": metadata_version(level) if name == METADATA_VERSION else None}
