import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { Failure } from "../terminal/failure.ts";

/** The MCP Inspector if it is installed. Nothing is downloaded. */
function findInspector(root: string, path: string): string | null {
  const folders: string[] = [];
  for (let folder = root; ; folder = dirname(folder)) {
    folders.push(join(folder, "node_modules", ".bin"));
    if (folder === dirname(folder)) break;
  }
  folders.push(...path.split(delimiter).filter((folder) => folder !== ""));
  return folders.map((folder) => join(folder, "mcp-inspector")).find((file) => existsSync(file)) ?? null;
}

export function requireInspector(root: string, path: string): string {
  const found = findInspector(root, path);
  if (found !== null) return found;
  throw new Failure("the MCP Inspector is not installed, neither in the project nor globally", {
    hint: "Install it with: npm install --save-dev @modelcontextprotocol/inspector\nor run without --inspector.",
  });
}

/** Starts the Inspector on loopback. It prints its own address. */
export function startInspector(command: string, mcpUrl: string, port: number, onLine: (line: string) => void): ChildProcess {
  // Version 2 takes the server's address as an option; an older version has a field for it on its page.
  const args = majorVersion(command) >= 2 ? ["--web", "--transport", "http", "--server-url", mcpUrl] : [];
  const env = { ...process.env, CLIENT_PORT: String(port), HOST: "127.0.0.1", MCP_AUTO_OPEN_ENABLED: "false" };
  const child = spawn(process.execPath, [realpathSync(command), ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  child.on("error", (error) => onLine(`could not start: ${error.message}`));
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => {
      for (const line of text.split("\n")) if (line.trim() !== "") onLine(line.trim());
    });
  }
  return child;
}

function majorVersion(command: string): number {
  for (let folder = dirname(realpathSync(command)); folder !== dirname(folder); folder = dirname(folder)) {
    const file = join(folder, "package.json");
    if (!existsSync(file)) continue;
    const { name, version } = JSON.parse(readFileSync(file, "utf8")) as { name?: string; version?: string };
    if (name === "@modelcontextprotocol/inspector") return Number.parseInt(version ?? "0", 10);
  }
  return 0;
}
