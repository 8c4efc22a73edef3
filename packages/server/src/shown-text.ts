/** A text without the names of the server's own folders: for clients, whom they are no business of. */
export type ShownText = (text: string) => string;

/** `folders` by what is written instead of each: `{ "<home>": "/srv/aenv" }`. */
export function hideFolders(folders: Readonly<Record<string, string>>): ShownText {
  const hidden = Object.entries(folders)
    .map(([name, folder]) => ({ name, folder: folder.replace(/\/+$/, "") }))
    .filter(({ folder }) => folder.length > 1)
    // A folder inside another one is hidden by its own name.
    .sort((one, other) => other.folder.length - one.folder.length);
  return (text) => hidden.reduce((sum, { name, folder }) => (sum.includes(folder) ? sum.replaceAll(folder, name) : sum), text);
}
