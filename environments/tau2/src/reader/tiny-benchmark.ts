import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A test benchmark of one domain, with the layout and code style of the real one. */
export const tinyBenchmark: Readonly<Record<string, string>> = {
  LICENSE: "free\n",
  "data/tau2/domains/mock/db.json": '{"tasks": {}, "users": {"r_1": {"user_id": "r_1", "name": "Reader", "tasks": []}}}\n',
  "data/tau2/domains/mock/user_db.json": '{"notifications": {}}\n',
  "data/tau2/domains/mock/policy.md": "Be kind.\r\n",
  "data/tau2/domains/mock/policy_solo.md": "Be kind, alone.\n",
  "data/tau2/domains/mock/tasks.json":
    '[{"id": "create_task_1", "user_scenario": {"instructions": "Ask for a book."}, "ticket": "A book, please.", "evaluation_criteria": {"actions": []}}]\n',
  "data/tau2/domains/mock/split_tasks.json": '{"base": ["create_task_1"]}\n',
  "data/tau2/domains/mock/tasks_voice.json": "[]\n",
  "data/tau2/domains/mock/notes/deep.md": "deep\n",
  "data/tau2/user_simulator/simulation_guidelines.md": "Play a reader.\n",
  "data/tau2/user_simulator/simulation_guidelines_tools.md": "Play a reader with a card.\n",
  "src/tau2/utils/strict.py": `
from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Not shown: only a model's own words are."""

    model_config = ConfigDict(extra="forbid")
`,
  "src/tau2/domains/mock/data_model.py": `
from enum import Enum
from typing import Annotated, ClassVar, Dict, List, Literal, Optional, Union
from pydantic import BaseModel, Field
from tau2.utils.strict import Strict

Genre = Literal["prose", "verse"]


class Size(str, Enum):
    SMALL = "small"
    LARGE = "large"


class Spine(Strict):
    """
    The back of a book.
      It bears the title.
    """

    limit: ClassVar[int] = 3
    size: Size = Field(default=Size.LARGE, description="How " "wide")
    label: Optional[str] = Field(None, description="What it says")
    marks: List[str] = Field(default_factory=lambda: [], description="Stamps")
    pages: int = Field(..., ge=1)


class Book(BaseModel):
    spine: Spine
    sequel: Optional["Book"] = None
`,
  "src/tau2/domains/mock/tools.py": `
"""Tools of a library."""
import typing as t
from typing import Any, Dict, List, Optional, Union

from tau2.environment.toolkit import ToolKitBase, ToolType, is_discoverable_tool, is_tool
from .data_model import (
    Book,
    Genre,  # an alias
    Size,
)

MAX_LOANS = 4 * 3
Round = List["Round"]


class Common(ToolKitBase):
    @is_tool(ToolType.GENERIC)
    def hand_over(self, summary: str) -> str:
        """Give the reader to a librarian.

        Only if
         -  nothing else helps

        Args:
            summary: What happened so far.

        Returns:
            A word of thanks.
        """
        return f"done: {summary!r:>{10}} {'x'}"


class MockTools(Common):
    def __init__(self, db) -> None:
        super().__init__(db)

    @is_tool(ToolType.WRITE)
    def lend(self, reader_id: str, books: List[Book | dict], genre: Genre, limit: int = MAX_LOANS, note: str = None) -> str:
        """Lend books to a reader. The sentence goes on,
        even in the next line.
        Checks:
            - the reader exists

        Args:
            reader_id (str): The reader's ID, such as 'r_1': mind the colon.
            books: What to lend,
                each a book
                  or its fields,
                as you like.
            genre: Of the books.
            limit: How many at most.

        Raises:
            ValueError: If nobody has that ID.
        """
        if not books: raise ValueError("none")
        x = [b for b in books if b]
        return "lent"

    def _helper(self) -> None: ...

    @is_tool(ToolType.WRITE)
    def create_task(self, user_id: str, title: str, description: str = None) -> str:
        """Note a reader's wish.

        Args:
            user_id: Whose wish it is.
            title: The book's title.
        """
        return "noted"

    @is_tool(ToolType.READ)
    def measure(self, size: t.Union[Size, str], filters: Dict[str, Any] = {}, exact: Optional[float] = -1.5, anything=None) -> str:
        return ""

    @is_tool(ToolType.GENERIC, mutates_state=True)
    def shut(self) -> str:
        """Shut the door."""

    @is_discoverable_tool(ToolType.WRITE)
    def secret_0001(self, *anything) -> str:
        """Unseen."""

    @is_tool(ToolType.READ)
    def circle(self, what: Round) -> str:
        """Has a type that leads back to itself."""

    @is_tool(ToolType.READ)
    def computed(self, what: str = f"{MAX_LOANS} books") -> str:
        """Has a default that is made when it runs."""

    @is_tool(ToolType.READ)
    def beyond(self, when: Unheard) -> str:
        """Has a type that nobody declares."""
`,
  "src/tau2/domains/mock/user_tools.py": `
from tau2.environment.toolkit import ToolKitBase, ToolType, is_tool


class MockUserTools(ToolKitBase):
    @is_tool(ToolType.READ)
    def look(self) -> str:
        "Look around."
        return "a shelf"
`,
  "src/tau2/agent/librarian.py": `
import textwrap

LIBRARIAN_INSTRUCTION = """
You are a librarian.
Follow the {policy}.
""".strip()

SYSTEM_PROMPT = "<a>" + LIBRARIAN_INSTRUCTION + "</a>"
COMPUTED_PROMPT = load("somewhere")
VERSION = "1"


class Judge:
    @classmethod
    def ask(cls, transcript):
        if transcript:
            user_prompt = f"""
            Judge {transcript["text"]} fairly.
            """
        return user_prompt
`,
  "src/tau2/agent/llm_agent.py": `
AGENT_INSTRUCTION = """
Serve readers.
""".strip()

AGENT_SOLO_INSTRUCTION = """
Serve the ticket, then call {stop_tool}.
"""
`,
  "src/tau2/agent/strange.py": "this is ? no Python\n",
};

export function writeFiles(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}
