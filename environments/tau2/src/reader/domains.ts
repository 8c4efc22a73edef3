/** Domains whose data can be prepared, but which the environment cannot play yet. They are prepared only by name. */
export const unplayableDomains: readonly string[] = ["banking_knowledge"];

/** The required parts of a domain in a checkout: the classes of its tools and its data files. */
export interface DomainLayout {
  assistant: string;
  user?: string;
  files: readonly string[];
}

const POLICY_AND_TASKS = ["db.json", "policy.md", "tasks.json"] as const;

export const domainLayouts: Readonly<Record<string, DomainLayout>> = {
  mock: { assistant: "MockTools", user: "MockUserTools", files: [...POLICY_AND_TASKS, "user_db.json", "policy_solo.md"] },
  airline: { assistant: "AirlineTools", files: [...POLICY_AND_TASKS, "split_tasks.json"] },
  retail: { assistant: "RetailTools", files: [...POLICY_AND_TASKS, "split_tasks.json"] },
  telecom: {
    assistant: "TelecomTools",
    user: "TelecomUserTools",
    files: [
      "db.toml",
      "user_db.toml",
      "main_policy.md",
      "tech_support_manual.md",
      "tech_support_workflow.md",
      "tasks.json",
      "split_tasks.json",
    ],
  },
  banking_knowledge: { assistant: "KnowledgeTools", user: "KnowledgeUserTools", files: ["db.json"] },
};
