import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { listFiles } from "./files.ts";
import { lineAt, type Problem } from "./problem.ts";

/** Relative links and anchors must exist, and so must the script of every `npm run …` in a text. */
export async function checkLinks(root: string): Promise<readonly Problem[]> {
  const files = (await listFiles(root)).filter((path) => path.endsWith(".md") && !path.includes("/templates/"));
  const texts = new Map<string, string>();
  for (const path of files) texts.set(path, await readFile(join(root, path), "utf8"));
  const problems: Problem[] = [];
  for (const [file, text] of texts) {
    for (const { target, at } of findLinks(text)) {
      const message = linkObjection(root, texts, file, target);
      if (message !== null) problems.push({ file, line: lineAt(text, at), message });
    }
    const scripts = await readScripts(root, posix.dirname(file));
    for (const { script, at } of findScripts(text)) {
      if (!scripts.has(script)) problems.push({ file, line: lineAt(text, at), message: `no npm script is called '${script}'` });
    }
  }
  return problems;
}

/** Targets of `[text](target)` and `[label]: target`, outside code. */
export function findLinks(markdown: string): { target: string; at: number }[] {
  const prose = blankCode(markdown);
  const inline = prose.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g);
  const labelled = prose.matchAll(/^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$/gm);
  return [...inline, ...labelled].map((found) => ({ target: found[1] as string, at: found.index }));
}

/** The anchors of the headings as GitHub makes them: lower case, no punctuation, spaces as `-`, numbered if repeated. */
export function anchors(markdown: string): Set<string> {
  const found = new Set<string>();
  for (const [, heading = ""] of blankFences(markdown).matchAll(/^ {0,3}#{1,6}\s+(.+?)\s*#*$/gm)) {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const slug = text.replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");
    let name = slug;
    for (let count = 1; found.has(name); count += 1) name = `${slug}-${count}`;
    found.add(name);
  }
  return found;
}

/** The npm scripts that a text mentions, in code or in prose. */
export function findScripts(markdown: string): { script: string; at: number }[] {
  return [...markdown.matchAll(/\bnpm (?:run (?:-s )?([\w:-]+)|(test)\b)/g)].map((found) => ({
    script: found[1] ?? (found[2] as string),
    at: found.index,
  }));
}

function linkObjection(root: string, texts: ReadonlyMap<string, string>, file: string, target: string): string | null {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return null;
  const [path = "", anchor] = decodeURIComponent(target).split("#");
  const leadsTo = path === "" ? file : posix.join(path.startsWith("/") ? "" : posix.dirname(file), path);
  if (leadsTo.startsWith("..") || !existsSync(join(root, leadsTo))) return `the target of the link '${target}' does not exist`;
  if (anchor === undefined || !leadsTo.endsWith(".md")) return null;
  const text = texts.get(leadsTo);
  return text === undefined || anchors(text).has(anchor) ? null : `'${leadsTo}' has no heading for '#${anchor}'`;
}

/** Scripts of a project that `aenv init` creates; the guides mention them. */
const projectScripts = ["dev", "build", "test", "typecheck"];

/** The scripts of every package.json from a folder up to the root: commands may run in any of them. */
async function readScripts(root: string, folder: string): Promise<Set<string>> {
  const names = new Set<string>(projectScripts);
  for (let here = folder; ; here = posix.dirname(here)) {
    const path = join(root, here, "package.json");
    if (existsSync(path)) {
      for (const name of Object.keys(JSON.parse(await readFile(path, "utf8")).scripts ?? {})) names.add(name);
    }
    if (here === ".") return names;
  }
}

function blankFences(markdown: string): string {
  return markdown.replace(/^ *(```+|~~~+)[^\n]*\n[\s\S]*?^ *\1 *$/gm, blank);
}

function blankCode(markdown: string): string {
  return blankFences(markdown).replace(/(`+)[^`][\s\S]*?\1/g, blank);
}

/** Spaces for text, line ends kept, so that offsets still count lines. */
function blank(text: string): string {
  return text.replace(/[^\n]/g, " ");
}
