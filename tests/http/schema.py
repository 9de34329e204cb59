"""Compares a value with a JSON schema, as far as odradek.http.control.schemas makes them."""

KINDS = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def mismatch(schema, value, components):
    """Return the place where a value differs from its schema; None if it does not."""
    if "$ref" in schema:
        return mismatch(components[schema["$ref"].rpartition("/")[2]], value, components)
    if "anyOf" in schema:
        found = [mismatch(each, value, components) for each in schema["anyOf"]]
        return None if None in found else found
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds and not any(KINDS[kind](value) for kind in kinds):
        return f"{value!r} is not of {kinds}"
    if isinstance(value, list):
        return next(filter(None, (mismatch(schema.get("items", {}), each, components) for each in value)), None)
    if isinstance(value, dict):
        return _mismatch_in(schema, value, components)
    return None


def _mismatch_in(schema, value, components):
    known = schema.get("properties", {})
    # An object with named fields has no others, though clients must expect them of a later version.
    more = schema.get("additionalProperties", not known)
    missing = [name for name in schema.get("required", []) if name not in value]
    unknown = [name for name in value if name not in known and more is False]
    if missing or unknown:
        return f"missing {missing}, unknown {unknown}"
    inner = {name: known.get(name, more if isinstance(more, dict) else {}) for name in value}
    return next(filter(None, (mismatch(inner[name], each, components) for name, each in value.items())), None)
