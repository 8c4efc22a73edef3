import type { ChildProcess } from "node:child_process";

/**
 * Makes sure that a process does not outlive this one. Returns the function that ends it and waits for its exit. A process that
 * has to clean up gets SIGTERM.
 */
export function own(child: ChildProcess, signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): () => Promise<void> {
  const kill = () => void child.kill(signal);
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    // It was never started.
    child.once("error", () => resolve());
  });
  process.once("exit", kill);
  void ended.then(() => process.off("exit", kill));
  return () => {
    kill();
    return ended;
  };
}
