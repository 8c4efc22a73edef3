import type * as z from "zod";

/** The maximum number of problems in one message. */
const MAX_PROBLEMS = 5;
/** The maximum number of characters that describe one of them. */
const MAX_RULE = 2_000;

/**
 * Describes the problems of a value: each field and what it must be. The value itself is left out, because it may be a secret.
 * `whole` names the value, for problems without a path.
 */
export function problemsOf(error: z.ZodError, whole: string): string {
  const described = error.issues.slice(0, MAX_PROBLEMS).map((issue) => problemOf(issue, whole));
  const more = error.issues.length - described.length;
  return [...described, ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}

function problemOf(issue: z.core.$ZodIssue, whole: string): string {
  const path = issue.path.map((key) => shortened(String(key))).join(".");
  if (issue.code === "unrecognized_keys") return path === "" ? shortenedRule(issue.message) : `${path}: ${shortenedRule(issue.message)}`;
  const field = path || whole;
  if (/received undefined$/.test(issue.message)) return `${field} is missing`;
  const rule = shortenedRule(ruleOf(issue));
  return rule.startsWith("must ") ? `${field} ${rule}` : `${field}: ${rule}`;
}

function ruleOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${withArticle(issue.expected)}`;
    case "too_big":
      return limit(issue.origin, "at most", issue.maximum);
    case "too_small":
      return issue.origin === "string" && issue.minimum === 1 ? "must not be empty" : limit(issue.origin, "at least", issue.minimum);
    case "invalid_value":
      return `must be ${issue.values.length === 1 ? "" : "one of "}${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    case "invalid_union": {
      const rules = issue.errors.flatMap(([first]) => (first === undefined ? [] : [ruleOf(first)]));
      return rules.length > 0 && rules.every((rule) => rule.startsWith("must ")) ? [...new Set(rules)].join(" or ") : issue.message;
    }
    case "invalid_key":
      return issue.issues[0] === undefined ? issue.message : `its name ${ruleOf(issue.issues[0])}`;
    default:
      return issue.message.replace(/^Invalid /, "must be a valid ");
  }
}

function limit(origin: string, bound: string, count: number | bigint): string {
  if (origin === "string") return `must have ${bound} ${count} characters`;
  return origin === "array" || origin === "map" || origin === "set" ? `must have ${bound} ${count} entries` : `must be ${bound} ${count}`;
}

function withArticle(type: string): string {
  if (type === "record") return "an object";
  if (type === "int") return "a whole number";
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}

/** A rule may name what was sent: a key, or all of a hundred thousand. */
function shortenedRule(rule: string): string {
  return rule.length > MAX_RULE ? `${rule.slice(0, MAX_RULE)}...` : rule;
}

function shortened(name: string): string {
  return name.length > 60 ? `${name.slice(0, 60)}...` : name;
}
