import { execFile } from "node:child_process";
import { PlatformError } from "@aenv/contract";

const TIMEOUT_MS = 20_000;

/** Runs `ip` or `nft` with this input, and returns what it prints. */
export async function command(program: "ip" | "nft", args: readonly string[], input = ""): Promise<string> {
  return await new Promise((resolve, reject) => {
    const child = execFile(program, args, { cwd: "/", timeout: TIMEOUT_MS, maxBuffer: 64 * 2 ** 20 }, (cause, stdout, stderr) => {
      if (cause === null) return resolve(stdout);
      const [line = ""] = stderr.trim().split("\n");
      const missing = cause.code === "ENOENT" ? `${program} is not installed; install iproute2 and nftables` : null;
      reject(
        new PlatformError(
          "sandbox.start_failed",
          `the network of sandboxes could not be changed by '${[program, ...args].join(" ")}': ${missing ?? (line || cause.message)}`,
          { cause },
        ),
      );
    });
    // A program that ends before it read its input is reported by its exit code.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

export async function ip(lines: readonly string[], namespace?: string): Promise<void> {
  await command("ip", [...(namespace === undefined ? [] : ["-n", namespace]), "-batch", "-"], `${lines.join("\n")}\n`);
}

export async function nft(script: string): Promise<void> {
  await command("nft", ["-f", "-"], script);
}
