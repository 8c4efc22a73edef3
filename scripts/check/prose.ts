import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { listFiles } from "./files.ts";
import { lineAt, type Problem } from "./problem.ts";

/** A text that is read as prose, and its offset in the file. */
export interface Prose {
  readonly text: string;
  readonly at: number;
}

const MOST_WORDS = 40;
const MOST_SUBJECT = 90;

const CODE = /\.(?:[mc]?[jt]s|go)$/;
const SCRIPT = /\.(?:py|sh)$|^\.ci\//;
const FOREIGN = /(?:^|\/)(?:fixtures|examples|vectors|templates)\/|^bench\/results\/|^docs\/reference\//;

/** Fails on comments without a subject, on `who` for a thing, on long sentences, and on long subjects of new commits. */
export async function checkProse(root: string): Promise<readonly Problem[]> {
  const problems: Problem[] = longSubjects(newSubjects(root));
  for (const file of await listFiles(root)) {
    if (FOREIGN.test(file)) continue;
    const find = CODE.test(file) ? findComments : SCRIPT.test(file) ? findScriptComments : file.endsWith(".md") ? findParagraphs : null;
    if (find === null) continue;
    const source = await readFile(join(root, file), "utf8");
    for (const { text, at } of find(source)) {
      const faults = [...(file.endsWith(".md") ? [] : subjectFaults(text)), ...wordFaults(text)];
      for (const message of faults) problems.push({ file, line: lineAt(source, at), message });
    }
  }
  return problems;
}

/** Comments that stand on lines of their own, without their tables and indented blocks. Lines of `//` that follow each other are one comment. */
export function findComments(source: string): Prose[] {
  const found: Prose[] = [];
  for (const { 0: whole, index } of source.matchAll(/^[ \t]*(?:\/\*[\s\S]*?\*\/|\/\/.*(?:\n[ \t]*\/\/.*)*)/gm)) {
    const prose = whole.replace(/^[ \t]*\*(?: {5,}| ?\|).*$/gm, "");
    found.push({ text: plain(prose, /^[ \t]*(?:\/\*+|\*\/|\*|\/\/)|\*\/$/gm), at: index });
  }
  return found;
}

/** Comments with `#`, and docstrings of Python. */
export function findScriptComments(source: string): Prose[] {
  const found = source.matchAll(/^[ \t]*(?:#(?!!).*(?:\n[ \t]*#.*)*|"""[\s\S]*?""")/gm);
  // A docstring's examples and lists of fields follow its first paragraph.
  return [...found].map(({ 0: whole, index }) => ({ text: plain(whole.split(/\n\s*\n/)[0] ?? "", /^[ \t]*#|"""/gm), at: index }));
}

/** Paragraphs and items of lists, without blocks of code, tables and headings. */
export function findParagraphs(source: string): Prose[] {
  const text = source.replace(/^( *)(`{3,})[\s\S]*?^\1\2/gm, (block) => block.replace(/[^\n]/g, " "));
  const found: Prose[] = [];
  for (const { 0: whole, index } of text.matchAll(/^(?![ \t]*(?:[|#<]|$))[ \t]*\S.*(?:\n(?![ \t]*(?:[|#<]|[-*] |\d+\. |$)).*\S.*)*/gm))
    found.push({ text: plain(whole, /^[ \t]*(?:[-*]|\d+\.) /gm), at: index });
  return found;
}

function plain(text: string, marks: RegExp): string {
  return text.replace(marks, " ").replace(/\s+/g, " ").trim();
}

/** Words after which `One` stands for a thing that was not named. */
const AFTER_BARE_ONE = "that|which|per|after|is|was|has|may|must|can|cannot|does|goes|at|for|in|with|without|by|from|to";
const BARE = new RegExp(`^(?:(?:Of|By) (?!default)|For (?!example)|One (?:${AFTER_BARE_ONE})\\b)`);
/** What begins like a part of another sentence; a comma or a colon later shows that the sentence begins there. */
const PART =
  /^(?:With|Without|Within|From|To|In|On|At|As|Into|Until|Beside|Between|Behind|Beyond|Below|Above|After|During|Instead|Like|Per|Than|Which|Whose|Whom|Not|Also|Only|And|Or|But)\b[^,:;]{0,45}\.?$/;
/** A clause that begins like this and has no comma needs another one. */
const CLAUSE = /^(?:Before|While|Unless|Since|Because|If)\b[^,:;]{0,45}\.?$/;
const VERB =
  /\b(?:is|are|was|were|be|been|has|have|had|do|does|did|can|cannot|could|may|might|must|shall|should|will|would|needs?|let|lets)\b|\b\w+(?:[^s\W]s|ed|n't)\b|n't\b/;

export function subjectFaults(comment: string): string[] {
  const first = comment.split(/(?<=[.!?]) (?=[A-Z`])/)[0] ?? "";
  const [word] = comment.split(" ");
  if (BARE.test(comment)) return [`a comment begins with '${word}': name the subject`];
  if (CLAUSE.test(first)) return [`'${first}' has no main clause`];
  return PART.test(first) && !VERB.test(first.slice(word?.length ?? 0).replace(/`[^`]*`/g, "code"))
    ? [`'${first}' has no subject and no verb`]
    : [];
}

/** Things that are "it". Those who are not listed may be people. */
const THING =
  "process|server|sandbox|program|instance|client|container|pod|engine|episode|request|file|worker|model|host|peer|agent|environment|command|node|service|runtime|kernel|daemon|machine|connection|shell|gateway|replica";

export function wordFaults(text: string): string[] {
  const faults: string[] = [];
  const who = new RegExp(`\\b(?:${THING})(?:e?s)?,? who\\b`).exec(text);
  if (who !== null) faults.push(`'${who[0]}': a thing is "that" or "which"`);
  for (const sentence of sentencesOf(text)) {
    const words = sentence.split(/\s+/).filter((word) => /[\p{L}\d]/u.test(word)).length;
    if (words > MOST_WORDS) faults.push(`a sentence of ${words} words: '${sentence.slice(0, 50)}…'; at most ${MOST_WORDS}`);
  }
  return faults;
}

/** Sentences, in which code, quotations and the target of a link count as one word. */
function sentencesOf(text: string): string[] {
  const short = text.replace(/`[^`]*`|"[^"]*"/g, "code").replace(/\]\([^)]*\)/g, "]");
  return short.split(/(?<=[.!?][)"'*]*)\s+/);
}

export function longSubjects(subjects: readonly string[]): Problem[] {
  const long = subjects.filter((subject) => subject.length > MOST_SUBJECT);
  return long.map((subject) => ({
    file: ".git",
    message: `the subject of a commit has ${subject.length} characters, at most ${MOST_SUBJECT}: ${subject}`,
  }));
}

/** The subjects of commits that `origin/main` does not have; none in a clone without it. */
function newSubjects(root: string): string[] {
  const { status, stdout } = spawnSync("git", ["log", "--no-merges", "--format=%s", "origin/main..HEAD"], { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.split("\n").filter((subject) => subject !== "") : [];
}
