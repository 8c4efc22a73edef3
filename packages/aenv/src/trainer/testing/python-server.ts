import { spawn } from "node:child_process";
import { once } from "node:events";
import { pythonRlPath } from "@aenv/testing";

/** The server of a trainer, from its Python package. Leaving the scope ends it. */
export interface PythonServer extends AsyncDisposable {
  readonly url: string;
  ask(method: string, path: string, body?: unknown): Promise<unknown>;
}

/** Serves a FastAPI application on a free port; `application` is Python code that defines `app`. */
export async function servePython(application: string, key = "none"): Promise<PythonServer> {
  const code = `import uvicorn\n${application}\nuvicorn.run(app, host="127.0.0.1", port=0, lifespan="on")`;
  const child = spawn(pythonRlPath, ["-c", code], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", PYTHONWARNINGS: "ignore" },
  });
  const end = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  let said = "";
  for await (const text of child.stderr.setEncoding("utf8")) {
    said += text;
    const url = /running on (http:\S+)/.exec(said)?.[1];
    if (url === undefined) continue;
    child.stderr.resume();
    return { url, ask: (method, path, body) => ask(url + path, method, body, key), [Symbol.asyncDispose]: end };
  }
  await end();
  throw new Error(`the server ended before it listened:\n${said}`);
}

async function ask(url: string, method: string, body: unknown, key: string): Promise<unknown> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${key}` };
  const response = await fetch(url, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${text}`);
  return text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text;
}
