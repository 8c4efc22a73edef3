import type { ComponentName } from "@aenv/testing";

interface NotRun {
  readonly text: string;
  readonly why: string;
  /** It is run where the component is. */
  readonly needs?: ComponentName;
}

/** Commands and snippets of the docs that the tests do not run: a text that each contains, and the reason. */
export const notRun: readonly NotRun[] = [
  { text: "npm install && npm test", why: "it is this suite; .ci/run does it" },
  { text: "--host 0.0.0.0", why: "it would listen beyond this machine" },
  { text: "--home /srv/aenv", why: "there is no server's home; commands/token/token.test.ts resets an administrator token" },
  { text: "redis.example", why: "it needs a Redis of that name" },
  { text: "pip install aenvironment", why: "interop/python runs the original SDK" },
  { text: "python play.py", why: "interop/python runs the original SDK" },
  { text: "token revoke 0123456789ab", why: "the id is a placeholder" },
  { text: "my-env-abc234", why: "the id is a placeholder" },
  { text: "env.presignUrl(3000", why: "nothing listens there; platform-tests/presign.test.ts has an environment that does" },
  { text: 'TAU2_DOMAIN: "airline"', why: "it needs the benchmark's data, which the project does not contain", needs: "tau2-data" },
  { text: "TAU2_DOMAIN=airline", why: "it needs the benchmark's data, which the project does not contain", needs: "tau2-data" },
  { text: "tau2:replay -- FILE", why: "FILE is a placeholder for a recording that the project does not contain" },
  { text: "terminal-bench:replay -- FILE", why: "FILE is a placeholder for a recording that the project does not contain" },
  { text: "OPENAI_MODEL=...", why: "it needs a model; examples/agent has a test with a scripted one" },
  { text: "node examples/agent/main.ts", why: "it needs a model; examples/agent has a test with a scripted one" },
];

export function isLeftOut(printed: string, has?: ComponentName): boolean {
  return notRun.some(({ text, needs }) => printed.includes(text) && (needs === undefined || needs !== has));
}
