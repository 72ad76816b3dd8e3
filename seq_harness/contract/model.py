"""What every model of the wire shares."""

from pydantic import BaseModel, ConfigDict


class WireModel(BaseModel):
    """A model that takes its own keys alone; scalars are coerced as pydantic's lax mode does."""

    model_config = ConfigDict(extra='forbid')
