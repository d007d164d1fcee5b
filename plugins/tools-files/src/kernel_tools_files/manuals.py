"""The manuals of the six tools: when to use them, when not, their limits. They stand in the system prompt."""

READ = """\
Reads a file. Give the path alone: a whole file is read in one call, up to about 25,000 tokens (100,000 characters).
- Text comes as line number, tab, line. The number and the tab are not part of the file. Lines over 2,000 characters are cut.
- A longer file gives its first page and a PARTIAL view notice; go on with offset and limit. A range that is too long is an
  error. To find a place in a large file, use Grep first.
- Images (PNG, JPEG, GIF, WebP), PDF files of up to 10 pages and notebooks (.ipynb) are shown as what they are. For longer PDF
  files give pages.
- A folder is an error: list it with ls in Bash, or use Glob.
- A file that has not changed since you read it is not shown again; look at the earlier result.
Read several files in one message when you need them all."""

WRITE = """\
Writes a whole file. For a change in an existing file use Edit, which is shorter and safer.
- An existing file must have been read before, and not have changed since.
- Missing folders are made. The encoding and the line ends of an existing file are kept.
- Do not write files nobody asked for, above all no documentation."""

EDIT = """\
Replaces old_string by new_string in a file.
- Read the file first. Take old_string from what Read showed, without the line number and the tab, with the same indentation.
- old_string must occur exactly once. If it occurs more often, add lines around it, or set replace_all to change every one.
- Strings are taken literally: no regular expressions. Line ends, encoding and everything else stay as they are.
- An empty old_string creates a file that does not exist yet.
- For notebooks use NotebookEdit."""

NOTEBOOK_EDIT = """\
Changes one cell of a notebook (.ipynb), which must have been read before.
- replace (the default) gives the cell cell_id a new source; a code cell loses its outputs. cell_type changes its type.
- insert puts a new cell of cell_type behind cell_id, or first where cell_id is left out.
- delete removes the cell cell_id.
Cell ids stand in what Read shows; notebooks without ids count their cells: cell-0, cell-1 and so on."""

GLOB = """\
Finds files by name, newest first, at most 100.
- Patterns: ** for any folders, * and ? within a name, [abc], {a,b}. src/**/*.ts is anchored at path; a pattern without a slash,
  such as *.py, finds files at any depth.
- Hidden and ignored files are found too; version-control folders are not, unless path or pattern names one.
- To search in the content of files use Grep."""

GREP = """\
Searches the content of files with a regular expression (ripgrep's syntax: escape literal braces, no look-around).
- output_mode: files_with_matches (the default) lists files, content lists lines, count lists numbers of matching lines. The
  newest files come first.
- Narrow it with path, glob (*.{ts,tsx}) or type (py, js, rust ...).
- content takes -A, -B, -C for lines around a match, -o for the matching parts alone, -n false for no line numbers.
- head_limit (250) and offset page through the results. multiline lets a pattern span lines.
- Ignored files and version-control folders are left out; an ignored file is searched when path names it.
Use this instead of grep or rg in Bash."""
