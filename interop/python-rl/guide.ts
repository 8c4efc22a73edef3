import { readFileSync } from "node:fs";

/** The text of a guide. */
export function readGuide(name: string): string {
  return readFileSync(new URL(`../../docs/guides/${name}.md`, import.meta.url), "utf8");
}

/** The code in the fences of a language, in order; those of no language for the empty word. */
export function blocksIn(markdown: string, language: string): string[] {
  return [...markdown.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)].flatMap(([, found, code = ""]) => (found === language ? [code] : []));
}
