/** Removes the paths of the server's folders from a text, so that clients do not see them. */
export type ShownText = (text: string) => string;

/** `folders` maps each placeholder to the folder that it replaces: `{ "<home>": "/srv/aenv" }`. */
export function hideFolders(folders: Readonly<Record<string, string>>): ShownText {
  const hidden = Object.entries(folders)
    .map(([name, folder]) => ({ name, folder: folder.replace(/\/+$/, "") }))
    .filter(({ folder }) => folder.length > 1)
    // Longest first: a folder inside another one has its own placeholder.
    .sort((one, other) => other.folder.length - one.folder.length);
  return (text) => hidden.reduce((sum, { name, folder }) => (sum.includes(folder) ? sum.replaceAll(folder, name) : sum), text);
}
