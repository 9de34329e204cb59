"""Source of a generated class, and of the types and defaults of its fields."""

from odradek.protocol.messages import SECRETS

_TYPES = {"string": "str", "bytes": "bytes", "records": "Sized", "bool": "bool", "uuid": "UUID", "float64": "float"}


def named_tuple(name: str, schema_name: str, doc: str, fields: list[str]) -> str:
    """The class. ``fields`` are its lines, without indentation; its ``repr`` hides the secrets of ``schema_name``."""
    lines = [f"    {field}" for field in fields]
    secrets = ", ".join(f'"{field}"' for field in sorted(SECRETS.get(schema_name, ())))
    if secrets:
        lines += ["", "    def __repr__(self) -> str:", f"        return shown(self, {secrets})"]
    return "\n".join([f"class {name}(NamedTuple):", f'    """{doc}"""', *([""] if lines else []), *lines])


def python_type(kafka_type: str) -> str:
    """The class of a primitive type's values."""
    return _TYPES.get(kafka_type, "int")


def literal(default: str) -> str:
    """A default, given as JSON, as Python."""
    return {"null": "None", "true": "True", "false": "False"}.get(default, default)
