import picocolors from "picocolors";
import { expect, it } from "vitest";
import { progressBar } from "./progress-bar.ts";
import type { Terminal } from "./terminal.ts";

function terminal(isTty: boolean): Terminal & { written: string[] } {
  const written: string[] = [];
  const output = { colors: picocolors.createColors(false), isTty, columns: 100, write: (text: string) => written.push(text) };
  const stopSignal = () => new AbortController().signal;
  return { stdout: output, stderr: output, cwd: "/", env: {}, isInteractive: isTty, stopSignal, written };
}

it("shows the progress of a transfer, always its end, and is removed", () => {
  const watched = terminal(true);
  const bar = progressBar(watched, "Uploading x", 2_000_000);
  bar.at(500_000);
  bar.at(500_001);
  bar.at(2_000_000);
  bar.end();
  expect(watched.written).toHaveLength(3);
  expect(watched.written[0]).toContain("500 kB of 2.0 MB 25 %");
  expect(watched.written[1]).toContain("2.0 MB of 2.0 MB 100 %");
  expect(watched.written[2]).toBe("\r\x1b[2K");
});

it("prints nothing without a terminal", () => {
  const unwatched = terminal(false);
  const bar = progressBar(unwatched, "Uploading x", 10);
  bar.at(10);
  bar.end();
  expect(unwatched.written).toEqual([]);
});
