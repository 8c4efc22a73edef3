import { messageOf, PlatformError } from "@aenv/contract";
import { launch } from "../host/launcher.ts";
import { isInitError } from "../init/error.ts";

const TIMEOUT_MS = 20_000;

/** Runs `ip` or `nft` with this input, and returns what it prints. */
export async function command(program: "ip" | "nft", args: readonly string[], input?: string): Promise<string> {
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const ended = await launch({ argv: [program, ...args], signal: limit, ...(input !== undefined && { input }) });
    if (ended.exitCode === 0) return ended.stdout.toString();
    const [line = ""] = ended.stderr.toString().trim().split("\n");
    throw new Error(
      limit.aborted ? `no answer within ${TIMEOUT_MS / 1_000} seconds` : line || `it ended with ${ended.signal ?? ended.exitCode}`,
    );
  } catch (cause) {
    const reason = isInitError(cause, "no_program") ? `${program} is not installed; install iproute2 and nftables` : messageOf(cause);
    throw new PlatformError(
      "sandbox.start_failed",
      `the network of sandboxes could not be changed by '${[program, ...args].join(" ")}': ${reason}`,
      { cause },
    );
  }
}

export async function ip(lines: readonly string[], namespace?: string): Promise<void> {
  await command("ip", [...(namespace === undefined ? [] : ["-n", namespace]), "-batch", "-"], `${lines.join("\n")}\n`);
}

export async function nft(script: string): Promise<void> {
  await command("nft", ["-f", "-"], script);
}
