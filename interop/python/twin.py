"""The environment of twin.ts as an author of the original SDK writes it."""

from typing import Any, Dict, List

from aenv import register_function, register_reward, register_tool
from fastmcp.utilities.types import Image
from typing_extensions import TypedDict


class Forecast(TypedDict):
    city: str
    days: int


@register_tool
def get_weather(city: str) -> Dict[str, Any]:
    """Weather of a city."""
    return {"city": city, "temperature": "20", "wind": None}


@register_tool
def greet(name: str, greeting: str = "Hello") -> str:
    """Greets someone."""
    return f"{greeting}, {name}!"


@register_tool
def forecast(city: str, days: int) -> Forecast:
    """Forecast for some days."""
    return {"city": city, "days": days}


@register_tool
def temperatures() -> List[int]:
    """Temperatures of the week."""
    return [20, 21, 19]


@register_tool
def nothing() -> None:
    """Does nothing."""


@register_tool
def picture() -> Image:
    """A picture of the sky."""
    return Image(data=b"hi", format="png")


@register_tool
def fail(why: str) -> str:
    """Fails."""
    raise ValueError(why)


@register_function
def get_weather_func(city: str) -> Dict[str, Any]:
    return {"city": city, "temperature": "20"}


@register_function
def explode(why: str) -> None:
    raise ValueError(why)


@register_reward
def is_good_weather(city: str) -> bool:
    return city == "Beijing"
