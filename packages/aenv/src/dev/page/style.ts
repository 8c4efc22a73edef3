/** The page's whole look, in light and dark. */
export const STYLE = `
:root { color-scheme: light dark; --text: #1c2430; --soft: #5a6675; --back: #f6f7f9; --card: #ffffff; --line: #d9dee5; --accent: #1a5fb4; --on-accent: #ffffff; --bad: #b3261e; --code: #eef1f5; }
@media (prefers-color-scheme: dark) { :root { --text: #e6eaf0; --soft: #a0abba; --back: #14181e; --card: #1c222b; --line: #333c49; --accent: #8ab8f5; --on-accent: #10202f; --bad: #ff9a92; --code: #262e39; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1.25rem 4rem; max-width: 60rem; background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
header { margin-bottom: 1.5rem; }
h1 { margin: 0; font-size: 1.75rem; overflow-wrap: anywhere; }
.version { color: var(--soft); font-weight: 400; }
header p, .hint, .empty { margin: .25rem 0 0; color: var(--soft); }
h2 { margin: 2rem 0 .75rem; font-size: 1.125rem; }
h3 { margin: 0; font: 600 1rem ui-monospace, monospace; overflow-wrap: anywhere; }
code, pre, output, textarea { font-family: ui-monospace, monospace; font-size: .875rem; }
dl, .card, .scroll, details { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
dl > div { display: grid; grid-template-columns: 7rem 1fr; gap: .75rem; align-items: center; padding: .5rem 1rem; }
dl > div + div { border-top: 1px solid var(--line); }
dt { color: var(--soft); }
dd { display: flex; gap: .75rem; align-items: center; justify-content: space-between; margin: 0; min-width: 0; }
dd code { overflow-wrap: anywhere; }
details { margin-top: .75rem; padding: .5rem 1rem; }
summary { cursor: pointer; }
.block { display: flex; gap: .75rem; align-items: flex-start; justify-content: space-between; }
pre { margin: .5rem 0; overflow-x: auto; }
.card { padding: 1rem; }
.card + .card { margin-top: .75rem; }
.about { margin: .25rem 0 0; color: var(--soft); white-space: pre-line; }
form { margin-top: .75rem; display: grid; gap: .75rem; }
form > button { justify-self: start; }
label { display: block; margin-bottom: .25rem; font-weight: 600; font-size: .875rem; }
.required { color: var(--bad); }
.hint { font-size: .8125rem; }
input, select, textarea { width: 100%; padding: .5rem .625rem; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: .375rem; font-size: .9375rem; }
button { padding: .5rem 1rem; border: 1px solid var(--accent); border-radius: .375rem; background: var(--accent); color: var(--on-accent); font: 600 .875rem system-ui, sans-serif; cursor: pointer; }
button.copy, td button, .actions button { background: transparent; color: var(--accent); }
button.copy { flex: none; padding: .25rem .625rem; }
button:disabled { opacity: .6; cursor: progress; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: .75rem; }
output { display: block; white-space: pre-wrap; overflow-wrap: anywhere; }
output:not(:empty) { padding: .75rem; background: var(--code); border-left: 3px solid var(--accent); border-radius: .25rem; }
output.failed { border-left-color: var(--bad); }
#episode { margin-top: .75rem; }
output img { display: block; max-width: 100%; }
.problem { color: var(--bad); }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .5rem 1rem; text-align: left; vertical-align: top; }
td:last-child:has(button) { text-align: right; }
thead th { color: var(--soft); font-weight: 400; font-size: .875rem; }
tbody th { font-weight: 400; }
tbody tr { border-top: 1px solid var(--line); }
.skip, .unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip:focus { position: static; width: auto; height: auto; clip-path: none; }
@media (max-width: 32rem) { dl > div { grid-template-columns: 1fr; gap: 0; } }
`;
