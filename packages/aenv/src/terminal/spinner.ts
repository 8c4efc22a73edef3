import type { Terminal } from "./terminal.ts";

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SHOW_AFTER_MS = 400;
const FRAME_MS = 80;

/** Shows a spinner while work takes longer than `SHOW_AFTER_MS`; prints nothing if stderr is no terminal. */
export async function withSpinner<T>(terminal: Terminal, label: string, work: () => Promise<T>): Promise<T> {
  const { stderr } = terminal;
  if (!stderr.isTty) return work();
  let frame = 0;
  const draw = () => stderr.write(`\r${stderr.colors.cyan(FRAMES[frame++ % FRAMES.length] as string)} ${label}…`);
  let ticking: NodeJS.Timeout | undefined;
  const waiting = setTimeout(() => {
    draw();
    ticking = setInterval(draw, FRAME_MS);
  }, SHOW_AFTER_MS);
  try {
    return await work();
  } finally {
    clearTimeout(waiting);
    clearInterval(ticking);
    if (frame > 0) stderr.write("\r\x1b[2K");
  }
}
