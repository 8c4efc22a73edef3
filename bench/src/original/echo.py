from aenv import register_reward, register_tool


# No return annotation: with one, the original would also check and wrap the result.
@register_tool
def echo(text: str):
    """Says the text back."""
    return text


@register_reward
def score(echoes: int):
    """The number of echoes."""
    return {"reward": echoes}
