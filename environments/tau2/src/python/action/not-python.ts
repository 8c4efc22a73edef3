/** The text is no Python: what it means is left to others. */
export class NotPython extends Error {}
