import { bytesText } from "./table.ts";
import type { Terminal } from "./terminal.ts";

const WIDTH = 24;
const EVERY_MS = 80;

/** A progress bar of a transfer; prints nothing if stderr is no terminal. `end` removes it. */
export interface Progress {
  at(bytes: number): void;
  end(): void;
}

export function progressBar({ stderr }: Terminal, label: string, total: number | null): Progress {
  if (!stderr.isTty) return { at: () => {}, end: () => {} };
  const { colors } = stderr;
  let drawnAt = Number.NEGATIVE_INFINITY;
  return {
    at: (bytes) => {
      if (performance.now() - drawnAt < EVERY_MS && bytes !== total) return;
      drawnAt = performance.now();
      stderr.write(`\r\x1b[2K${label} ${total === null ? bytesText(bytes) : bar(bytes, total)}`);
    },
    end: () => stderr.write("\r\x1b[2K"),
  };

  function bar(bytes: number, total: number): string {
    const part = total === 0 ? 1 : bytes / total;
    const full = Math.round(part * WIDTH);
    const drawn = colors.cyan("━".repeat(full)) + colors.dim("━".repeat(WIDTH - full));
    return `${drawn} ${bytesText(bytes)} of ${bytesText(total)} ${colors.dim(`${Math.floor(part * 100)} %`)}`;
  }
}
