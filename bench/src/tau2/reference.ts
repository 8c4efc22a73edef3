import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PYTHON } from "../original/original.ts";

/** The Python reference, if this machine can run it. */
export interface Reference {
  /** Golden actions of a domain per second, in new worlds. */
  rate(domain: string): Promise<number>;
}

/** The reference, or why there is none: it needs a checkout in `AENV_TAU2_CHECKOUT`, and a Python with its packages. */
export async function findReference(checkout = process.env.AENV_TAU2_CHECKOUT ?? ""): Promise<Reference | string> {
  if (checkout === "") return "AENV_TAU2_CHECKOUT names no checkout of tau2-bench";
  if (!existsSync(join(checkout, "src/tau2"))) return "AENV_TAU2_CHECKOUT holds no src/tau2";
  if (!existsSync(PYTHON)) return "no Python in interop/python/.venv; AENV_BENCH_PYTHON may name one that has the checkout's packages";
  try {
    await python(checkout, ["-c", "import tau2.registry"]);
  } catch (error) {
    const problem = String((error as { stderr?: string }).stderr ?? error).trim();
    return `the Python that was found cannot load tau2: ${problem.split("\n").at(-1)}`;
  }
  return { rate: (domain) => rateOf(checkout, domain) };
}

async function rateOf(checkout: string, domain: string): Promise<number> {
  const { stdout } = await python(checkout, [fileURLToPath(new URL("./reference.py", import.meta.url)), domain]);
  // The last line of its output; other output comes before.
  const { calls, seconds } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as { calls: number; seconds: number };
  return calls / seconds;
}

function python(checkout: string, args: readonly string[]) {
  const path = [join(checkout, "src"), process.env.PYTHONPATH ?? ""].filter((part) => part !== "").join(delimiter);
  const env = { ...process.env, PYTHONPATH: path, TAU2_DATA_DIR: join(checkout, "data") };
  return promisify(execFile)(PYTHON, [...args], { env });
}
