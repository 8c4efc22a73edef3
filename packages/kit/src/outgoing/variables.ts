const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** Values in which `${NAME}` stands for a variable of the instance, or of its process. */
export function expandVariables(
  values: Readonly<Record<string, string>>,
  variables: Readonly<Record<string, string>>,
  what: string,
): Record<string, string> {
  const variable = (name: string) => {
    const value = variables[name] ?? process.env[name];
    if (value !== undefined) return value;
    throw new Error(`${what} needs the variable ${name}, which the instance does not have`);
  };
  return Object.fromEntries(
    Object.entries(values).map(([key, text]) => [key, text.replace(VARIABLE, (_, name: string) => variable(name))]),
  );
}
