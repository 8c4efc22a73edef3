import type { Terminal } from "./terminal.ts";

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const PATIENCE_MS = 400;
const FRAME_MS = 80;

/** Shows that work is under way once it takes longer than a moment; silent where nobody watches. */
export async function withSpinner<T>(terminal: Terminal, label: string, work: () => Promise<T>): Promise<T> {
  const { stderr } = terminal;
  if (!stderr.isTty) return work();
  let frame = 0;
  const draw = () => stderr.write(`\r${stderr.colors.cyan(FRAMES[frame++ % FRAMES.length] as string)} ${label}…`);
  let ticking: NodeJS.Timeout | undefined;
  const waiting = setTimeout(() => {
    draw();
    ticking = setInterval(draw, FRAME_MS);
  }, PATIENCE_MS);
  try {
    return await work();
  } finally {
    clearTimeout(waiting);
    clearInterval(ticking);
    if (frame > 0) stderr.write("\r\x1b[2K");
  }
}
