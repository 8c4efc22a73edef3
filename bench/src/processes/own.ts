import type { ChildProcess } from "node:child_process";

/**
 * Makes sure that a process does not outlive us, and gives the function that ends it and waits until it is gone. One that
 * has to clear up after itself is asked with SIGTERM.
 */
export function own(child: ChildProcess, signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): () => Promise<void> {
  const kill = () => void child.kill(signal);
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    // It never was.
    child.once("error", () => resolve());
  });
  process.once("exit", kill);
  void ended.then(() => process.off("exit", kill));
  return () => {
    kill();
    return ended;
  };
}
