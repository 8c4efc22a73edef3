/** The texts for those who have a clone: `clone.test.ts` does what they say, the others are read with the published package. */
export const cloneTexts = ["README.md", "environments/echo/README.md", "examples/agent/README.md", "examples/all-in-one/README.md"];
