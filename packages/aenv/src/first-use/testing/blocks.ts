/** One fenced block of a text that a reader can run. */
export interface Block {
  readonly language: "sh" | "ts";
  readonly code: string;
  /** The line number of its first line of code. */
  readonly line: number;
}

/** Every `sh` and `ts` block, in order; a block with more words in its fence, such as `ts fragment`, is not run. */
export function findBlocks(markdown: string): Block[] {
  const blocks: Block[] = [];
  let open: { language: string; line: number; code: string[] } | null = null;
  for (const [index, line] of markdown.split("\n").entries()) {
    if (open === null) {
      const fence = /^```(.*)$/.exec(line);
      if (fence !== null) open = { language: (fence[1] as string).trim(), line: index + 2, code: [] };
    } else if (/^```\s*$/.test(line)) {
      const { language, code } = open;
      if (language === "sh" || language === "ts")
        blocks.push({ language, code: code.map((each) => `${each}\n`).join(""), line: open.line });
      open = null;
    } else {
      open.code.push(line);
    }
  }
  return blocks;
}

/**
 * The commands of a shell block: a line each, without comments. A backslash at the end of a line joins the next, and so does a quote
 * that is still open.
 */
export function commandsOf(code: string): string[] {
  const commands: string[] = [];
  let open = "";
  for (const line of code.replaceAll("\\\n", " ").split("\n")) {
    const command = open + line.replace(/(^|\s)#.*$/, "").trim();
    const isOpen = command.split("'").length % 2 === 0;
    open = isOpen ? `${command}\n` : "";
    if (!isOpen && command !== "") commands.push(command);
  }
  return commands;
}

/** A command that runs until it is stopped, and the commands before it on the same line. */
export function splitServer(command: string): { before: string; server: string } | null {
  const parts = command.split(" && ");
  const last = parts.at(-1) as string;
  const isServer = /\baenv(?:ironment)? (?:run|server|up)\b/.test(last) && !last.includes("--print-config");
  return isServer ? { before: parts.slice(0, -1).join(" && "), server: last } : null;
}
