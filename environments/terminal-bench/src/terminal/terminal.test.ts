import { describe, expect, it } from "vitest";
import { typed } from "./keys.ts";
import { PROMPT_MARK, Screen } from "./screen.ts";

const shown = (text: string, size = { rows: 4, cols: 10 }): Screen => {
  const screen = new Screen(size);
  screen.write(Buffer.from(text));
  return screen;
};

describe("a screen", () => {
  it.each([
    ["lines", "one\r\ntwo\r\n", "one\ntwo"],
    ["text over text", "hello\rJ", "Jello"],
    ["backspace and erasing", "abc\b\b\x1b[KX", "aX"],
    ["a long line, which goes on in the next one", "0123456789ab", "0123456789\nab"],
    ["colors, titles and character sets, which are left out", "\x1b[1;31mred\x1b[0m\x1b]0;title\x07\x1b(B!", "red!"],
    ["a cursor that moves", "\x1b[2;3Hx\x1b[Ay\x1b[Hz", "z  y\n  x"],
    ["a cleared screen", "old\x1b[2J\x1b[Hnew", "new"],
    ["tabs", "a\tb", "a       b"],
    ["characters of several bytes", "größe 漢字", "größe 漢字"],
  ])("shows %s", (_, text, expected) => {
    expect(shown(text).text()).toBe(expected);
  });

  it("keeps what has scrolled away", () => {
    const screen = shown("1\r\n2\r\n3\r\n4\r\n5\r\n6");
    expect([screen.text(), screen.all()]).toEqual(["3\n4\n5\n6", "1\n2\n3\n4\n5\n6"]);
  });

  it("shows the usual screen again after a program with a screen of its own", () => {
    const screen = shown("before\r\n\x1b[?1049h\x1b[Heditor");
    expect(screen.text()).toBe("editor");
    screen.write(Buffer.from("\x1b[?1049lafter"));
    expect(screen.text()).toBe("before\nafter");
  });

  it("reads sequences and characters that arrive in pieces", () => {
    const screen = new Screen({ rows: 4, cols: 20 });
    for (const byte of Buffer.from(`a\x1b[31mü\x1b]${PROMPT_MARK}\x07$ `)) screen.write(Uint8Array.of(byte));
    expect([screen.text(), screen.prompts]).toEqual(["aü$", 1]);
  });
});

it("keys have the names of tmux, and other text is typed as it is", () => {
  expect(["C-c", "Enter", "M-x", "C-[", "^d", "ls -la", "C-cat", "Up"].map(typed)).toEqual([
    "\x03",
    "\r",
    "\x1bx",
    "\x1b",
    "\x04",
    "ls -la",
    "C-cat",
    "\x1b[A",
  ]);
});
