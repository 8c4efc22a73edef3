import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { messageOf } from "@aenv/contract";
import { SYSTEM_PATH } from "./launcher.ts";

/** What a probe found. A failed one says why, in a sentence without its subject: "no program 'runc'". */
export type ProbeResult = { readonly ok: true; readonly detail: string } | { readonly ok: false; readonly reason: string };

export const PROBE_TIMEOUT_MS = 20_000;

/** Runs a program to its end. The detail is its first line of output. */
export async function probeProgram(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = { PATH: SYSTEM_PATH },
): Promise<ProbeResult> {
  try {
    const { stdout, stderr } = await promisify(execFile)(program, args, { timeout: PROBE_TIMEOUT_MS, env: { ...env, LC_ALL: "C" } });
    return { ok: true, detail: firstLine(stdout) || firstLine(stderr) };
  } catch (error) {
    const { code, killed, stderr = "" } = error as { code?: unknown; killed?: boolean; stderr?: string };
    if (code === "ENOENT") return { ok: false, reason: `no program '${program}'` };
    if (killed) return { ok: false, reason: `'${program}' did not end within ${PROBE_TIMEOUT_MS / 1_000} seconds` };
    return { ok: false, reason: `'${[program, ...args].join(" ")}' failed: ${firstLine(stderr) || messageOf(error)}` };
  }
}

/** Starts a program in a user namespace, as container tools without root do. */
export async function probeUserNamespaces(): Promise<ProbeResult> {
  const ran = await probeProgram("unshare", ["--user", "--map-root-user", "true"]);
  return ran.ok ? { ok: true, detail: "can be created" } : ran;
}

/** The result of a probe that returns its detail, or throws. */
export async function attempt(act: () => Promise<string>): Promise<ProbeResult> {
  try {
    return { ok: true, detail: await act() };
  } catch (error) {
    return { ok: false, reason: messageOf(error) };
  }
}

export function isRootOnLinux(): boolean {
  return process.platform === "linux" && process.getuid?.() === 0;
}

export function needsRoot(): ProbeResult {
  return { ok: false, reason: process.platform === "linux" ? "needs root" : "needs Linux" };
}

function firstLine(text: string): string {
  return text.trim().split("\n")[0] ?? "";
}
