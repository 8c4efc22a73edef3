import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { findEntries } from "@aenv/kit";
import type { Message } from "esbuild";
import { Failure, type Place, type Problem } from "../terminal/failure.ts";
import { LOAD_UNFINISHED } from "./load-errors.ts";
import type { Project } from "./project.ts";

/** Adds source locations to a load failure: Node names the file, esbuild also the line. Returns the failure unchanged if it finds none. */
export async function locateErrors(project: Project, failure: Failure): Promise<Failure> {
  const { root } = project;
  try {
    if (failure.code === LOAD_UNFINISHED) return await withAwaitLocations(project, failure);
    const { errors, metafile } = await tryBuild(project, "esm");
    const problems = esbuildProblems(errors, root);
    if (problems.length > 0) return new Failure(problems, { code: failure.code, hint: missingPackageHint(problems), cause: failure });
    const files = Object.keys(metafile?.inputs ?? {}).filter((file) => !file.startsWith("..") && !file.includes("node_modules/"));
    return withNameLocation(
      failure,
      files.map((file) => resolve(root, file)),
    );
  } catch {
    return failure;
  }
}

async function tryBuild({ root, config }: Project, format: "esm" | "cjs") {
  const { build } = await import("esbuild");
  return build({
    entryPoints: await findEntries(root, config),
    absWorkingDir: root,
    bundle: true,
    write: false,
    metafile: true,
    outdir: "out",
    platform: "node",
    format,
    target: "node22",
    logLevel: "silent",
  }).catch((error: { errors?: Message[] }) => ({ errors: error.errors ?? [], metafile: undefined }));
}

/** Names each top-level await of the project's own files, else the file that is loaded. CommonJS has no top-level await, so esbuild reports them all as errors. */
async function withAwaitLocations(project: Project, failure: Failure): Promise<Failure> {
  const { errors } = await tryBuild(project, "cjs");
  const own = errors.filter(({ text, location }) => text.startsWith("Top-level await") && !location?.file.includes("node_modules/"));
  const [entry] = await findEntries(project.root, project.config);
  const message = failure.message;
  const [first, ...others] = esbuildProblems(own, project.root);
  const problems = [
    { message, place: first?.place ?? (entry === undefined ? undefined : { file: entry, line: 1, column: 1 }) },
    ...others.map(({ place }) => ({ message: "this top-level await may also be the one that never settles", place })),
  ];
  return new Failure(problems, { code: failure.code, hint: failure.hint, cause: failure });
}

/** Only the location of the whole definition is known of a tool inside `defineEnvironment`. Its line is found by its name. */
function withNameLocation(failure: Failure, files: readonly string[]): Failure {
  const [problem] = failure.problems;
  const name = /^(?:tool|reward|function) '([^']+)'/.exec(problem?.message ?? "")?.[1];
  if (problem === undefined || name === undefined) return failure;
  const { place: known } = problem;
  // If the location of the definition is known, the name is below it.
  const isBelow = (one: Place) => known === undefined || (one.file === known.file && one.line >= known.line);
  const isTwice = problem.message.includes("twice");
  const found = files.flatMap((file) => placesOfName(file, name)).filter((one) => isTwice || isBelow(one));
  const place = (isTwice ? found[1] : undefined) ?? found[0];
  return place === undefined ? failure : new Failure([{ ...problem, place }], { code: failure.code, cause: failure });
}

function placesOfName(file: string, name: string): Place[] {
  const pattern = new RegExp(`\\bname:\\s*(["'\`])${name.replace(/[^\w]/g, "\\$&")}\\1`, "g");
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line, index) => [...line.matchAll(pattern)].map((match) => ({ file, line: index + 1, column: match.index + 1 })));
}

/** esbuild's messages as problems with locations. */
export function esbuildProblems(messages: readonly Message[], root: string): Problem[] {
  return messages.slice(0, 5).map(({ text, location }) => ({
    message: text,
    place: location === null ? undefined : { file: resolve(root, location.file), line: location.line, column: location.column + 1 },
  }));
}

export function missingPackageHint(problems: readonly Problem[]): string | undefined {
  const missing = problems.map(({ message }) => /^Could not resolve "([^./][^"]*)"/.exec(message)?.[1]).find((name) => name !== undefined);
  if (missing === undefined) return undefined;
  const name = missing
    .split("/")
    .slice(0, missing.startsWith("@") ? 2 : 1)
    .join("/");
  return `Is it installed? Run npm install, or: npm install ${name}`;
}
