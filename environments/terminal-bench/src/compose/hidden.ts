import { parseDockerfile } from "./dockerfile.ts";

/** Files of a task of Terminal-Bench 1 that its agent must not see, unless the task itself gives them to it. */
export const HIDDEN = ["task.yaml", "solution.sh", "solution.yaml", "run-tests.sh", "tests", "docker-compose.yaml"];

/** The hidden files that a Dockerfile copies: a task whose image contains its tests leaks them. */
export function copiedHiddenFiles(dockerfile: string): string[] {
  const copies = parseDockerfile(dockerfile).filter(({ name }) => name === "COPY" || name === "ADD");
  const sources = copies.flatMap(({ text }) =>
    text
      .split(/\s+/)
      .slice(0, -1)
      .map((source) => source.replace(/^["[]+|["\],]+$/g, "").replace(/^\.\//, "")),
  );
  return HIDDEN.filter((name) => sources.some((source) => isAt(source, name)));
}

/** Whether a file or folder is a hidden one, or in one. */
export function isHidden(path: string): boolean {
  return HIDDEN.some((name) => isAt(path, name));
}

function isAt(path: string, name: string): boolean {
  return path === name || path.startsWith(`${name}/`);
}
