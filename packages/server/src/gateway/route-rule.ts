import { matchesPath, PlatformError, pathsBelowInstance, type SandboxRoute } from "@aenv/contract";

/** Backslashes, and escaped slashes, backslashes and dots, also if they are escaped several times: `%2f`, `%252f`. */
const AMBIGUOUS = /\\|%(?:25)*(?:2f|5c|2e)/i;

/** Which paths below an instance the gateway passes on, by the route table. */
export interface RouteRule {
  /** Throws unless the path is a route of the agent API or the trainer API. */
  check(path: string): void;
  /** Exact: an escaped character or a slash at the end makes it another path. Below a path such as `/a2a/*`, escapes are decoded. */
  isAgentPath(path: string): boolean;
}

/**
 * Routes of the platform are refused with every method, and so is a path that the table does not list. A sandbox accepts escaped
 * characters and a slash at the end, so the path is compared without them. A path that two readers may split differently is refused.
 */
export function routeRuleFor(routes?: Readonly<Record<string, SandboxRoute>>): RouteRule {
  const platformPaths = pathsBelowInstance("platform", routes);
  const agentPaths = new Set(pathsBelowInstance("agent", routes));
  const agentTrees = [...agentPaths].filter((path) => path.endsWith("/*"));
  const openPaths = [...agentPaths, ...pathsBelowInstance("trainer", routes)];
  const isOpen = (segments: readonly string[]) =>
    openPaths.some((path) => matchesPath(path, segments)) && !platformPaths.some((path) => matchesPath(path, segments));
  // Nearly all calls are to a fixed path, written as in the table.
  const fixedPaths = new Set(openPaths.filter((path) => !/[:*]/.test(path) && isOpen(path.split("/").slice(1))));
  return {
    check: (path) => {
      if (fixedPaths.has(path)) return;
      const segments = plainSegments(path);
      if (segments === null || !isOpen(segments)) throw routeNotFound(path);
    },
    isAgentPath: (path) => {
      if (agentPaths.has(path)) return !path.includes("*");
      if (!agentTrees.some((tree) => path.startsWith(tree.slice(0, -1)))) return false;
      const segments = plainSegments(path);
      return segments !== null && agentTrees.some((tree) => matchesPath(tree, segments));
    },
  };
}

/** The decoded segments, without an empty one at the end; null if two readers may split the path differently. */
function plainSegments(path: string): string[] | null {
  const segments = path.split("/").slice(1).map(decodeSegment);
  if (segments.at(-1) === "") segments.pop();
  const isPlain =
    path.startsWith("/") && !AMBIGUOUS.test(path) && !segments.some((segment) => segment === "" || segment === "." || segment === "..");
  return isPlain ? segments : null;
}

export function routeNotFound(path: string): PlatformError {
  return new PlatformError("route.not_found", `${path} is not a route of an instance on this port`);
}

export function decodeSegment(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new PlatformError("route.not_found", "the path is badly escaped");
  }
}
