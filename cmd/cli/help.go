// Package cli has what the command lines of ibweave and
// ibweave-papers share: help texts, manual pages and reference,
// completion, exit statuses, progress, the log, and text that
// suits a terminal. It makes no promise to other modules.
package cli

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/ibweave/ibweave/compile/outdir"
)

// block is a part of a help text: a paragraph, lines kept as they are, or a list of items.
type block struct {
	text  string
	lines []string // without the indentation of two blanks
	items []item
}

// item is a word and its explanation.
type item struct{ head, text string }

// blocksOf splits a help text into blocks. Lines without indentation form a paragraph,
// which an empty or an indented line ends. "  WORD  text" is an item, which lines with
// more indentation continue. Other lines with two blanks in front are kept as they are.
func blocksOf(long string) (blocks []block) {
	ended := true
	last := func(same bool) *block {
		if ended || !same {
			blocks = append(blocks, block{})
		}
		ended = false
		return &blocks[len(blocks)-1]
	}
	for line := range strings.Lines(long) {
		// Cobra's own texts have a tab in front.
		line = strings.TrimRight(strings.Replace(line, "\t", "  ", 1), " \n")
		var b block
		if len(blocks) > 0 {
			b = blocks[len(blocks)-1]
		}
		inside, indented := strings.CutPrefix(line, "  ")
		head, text, isItem := strings.Cut(inside, "  ")
		switch {
		case line == "":
			ended = true
		case !indented:
			b := last(b.text != "")
			b.text = strings.TrimSpace(b.text + " " + line)
		case head == "" && b.items != nil && !ended:
			i := &b.items[len(b.items)-1]
			i.text += " " + strings.TrimSpace(line)
		case isItem && head != "":
			b := last(b.items != nil)
			b.items = append(b.items, item{strings.TrimSpace(head), strings.TrimSpace(text)})
		default:
			b := last(b.lines != nil)
			b.lines = append(b.lines, inside)
		}
	}
	return blocks
}

// shellLines breaks a command of an example before flags, into lines that fit a manual page.
func shellLines(command string) (lines []string) {
	if len(command) <= manColumns {
		return []string{command}
	}
	for i, part := range strings.Split(command, " -") {
		if i > 0 {
			part = "-" + part
		}
		switch last := len(lines) - 1; {
		case i == 0:
			lines = append(lines, part)
		case len(lines[last])+len(part)+3 <= manColumns:
			lines[last] += " " + part
		default:
			lines[last] += " \\"
			lines = append(lines, "  "+part)
		}
	}
	return lines
}

// Columns is the width of help texts; itemColumn is the greatest column where items' texts begin.
const (
	Columns    = 80
	manColumns = 73 // without the margin that man leaves
	itemColumn = 26
)

// Help returns the text of --help. For the program it lists the commands
// by groups, in at most 40 lines; for a command it has flags and examples.
func Help(c *cobra.Command) string {
	b := new(strings.Builder)
	b.WriteString(LaidOut(c.Long))
	if !c.Runnable() && !c.HasAvailableSubCommands() {
		return b.String() // a topic has no more
	}
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(b, "\n%s:\n%s", title, text)
		}
	}
	section("Usage", "  "+strings.Join(wrapped(c.UseLine(), Columns-6), "\n      ")+"\n")
	if c.HasParent() {
		section("Examples", examples(c))
	}
	commands, group := "", ""
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if sub.GroupID != group {
			group = sub.GroupID
			commands += group + ":\n"
		}
		commands += fmt.Sprintf("  %-*s%s\n", sub.NamePadding(), sub.Name(), sub.Short)
	}
	section("Commands", commands)
	if !c.HasParent() {
		fmt.Fprintf(b, "\n%s COMMAND --help has flags, examples and exit statuses.\n", c.Name())
		return b.String()
	}
	describeHelp(c)
	section("Flags", c.LocalFlags().FlagUsagesWrapped(Columns))
	section("Global flags", c.InheritedFlags().FlagUsagesWrapped(Columns))
	section("Exit status", LaidOut(exitStatus(c)))
	return b.String()
}

// describeHelp gives the flag --help a text like those of other flags.
func describeHelp(c *cobra.Command) {
	c.InitDefaultHelpFlag()
	c.Flags().Lookup("help").Usage = "print this text"
}

// examples returns the examples of a command, in lines that fit a manual page.
func examples(c *cobra.Command) string {
	var b strings.Builder
	for line := range strings.Lines(c.Example) {
		for _, part := range shellLines(strings.TrimSpace(line)) {
			b.WriteString("  " + part + "\n")
		}
	}
	return b.String()
}

// LaidOut returns a help text with lines broken for a terminal.
func LaidOut(long string) string {
	var b strings.Builder
	blocks := blocksOf(long)
	for i, block := range blocks {
		if i > 0 && (block.text != "" || blocks[i-1].text == "") {
			b.WriteByte('\n')
		}
		block.help(&b)
	}
	return b.String()
}

// help writes a block for a terminal.
func (k block) help(b *strings.Builder) {
	for _, line := range wrapped(k.text, Columns) {
		if line != "" {
			b.WriteString(line + "\n")
		}
	}
	for _, line := range k.lines {
		b.WriteString(strings.TrimRight("  "+line, " ") + "\n")
	}
	at := 0
	for _, i := range k.items {
		at = min(max(at, len(i.head)+4), itemColumn)
	}
	for _, i := range k.items {
		head := "  " + i.head
		for n, line := range wrapped(i.text, Columns-at) {
			if n == 0 && len(head)+2 > at {
				b.WriteString(head + "\n")
				head = ""
			}
			fmt.Fprintf(b, "%-*s%s\n", at, head, line)
			head = ""
		}
	}
}

// markdownEscapes keeps characters of plain text from being markup.
var markdownEscapes = func() *strings.Replacer {
	var pairs []string
	for _, c := range "\\`*_<>[]|#&~" {
		pairs = append(pairs, string(c), `\`+string(c))
	}
	return strings.NewReplacer(pairs...)
}()

// markdown converts a help text to Markdown.
func markdown(long string) string {
	var b strings.Builder
	for _, block := range blocksOf(long) {
		b.WriteString("\n")
		if block.text != "" {
			b.WriteString(markdownEscapes.Replace(block.text) + "\n")
		}
		if block.lines != nil {
			fmt.Fprintf(&b, "```\n%s\n```\n", strings.Join(block.lines, "\n"))
		}
		for _, i := range block.items {
			fmt.Fprintf(&b, "* `%s`: %s\n", i.head, markdownEscapes.Replace(i.text))
		}
	}
	return strings.TrimSpace(b.String())
}

// Pages returns the pages of all commands and help topics, made
// by cobra, by file name: manual pages if format is man, pages
// of docs/reference if it is markdown. The command help has no
// page, nor have moved commands, which have no help text.
func Pages(root *cobra.Command, format string) (map[string]string, error) {
	root.DisableAutoGenTag = true
	pages := map[string]string{}
	var wrong error
	Walk(root, func(c *cobra.Command) {
		if c.Name() == "help" || c.Long == "" {
			return
		}
		defer func(long, example string) { c.Long, c.Example = long, example }(c.Long, c.Example)
		c.DisableAutoGenTag = true
		c.Long, c.Example = markdown(c.Long), strings.Trim(strings.ReplaceAll(examples(c), "\n  ", "\n"), " \n")
		describeHelp(c)
		var b bytes.Buffer
		var err error
		if format == "man" {
			c.Long += "\n\n# EXIT STATUS\n" + markdown(exitStatus(c))
			err = doc.GenMan(c, &doc.GenManHeader{Date: &time.Time{}, Source: "ibweave " + outdir.Version, Manual: "ibweave"}, &b)
			text := strings.Replace(b.String(), "Jan 0001", "", 1) // the same bytes on any day
			pages[strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"] = manFlag.ReplaceAllString(text, ".TP\n$1\n")
		} else {
			c.Long += "\n\n### Exit status\n\n" + markdown(exitStatus(c))
			err = doc.GenMarkdownCustom(c, &b, referenceFile)
			pages[referenceFile(c.CommandPath()+".md")] = b.String()
		}
		if wrong == nil {
			wrong = err
		}
	})
	return pages, wrong
}

// ManCommand returns the command man, which makes the pages of root and gives them to write.
func ManCommand(root *cobra.Command, args cobra.PositionalArgs, write func(name string, page []byte) error) *cobra.Command {
	dir, format := "", "man"
	cmd := &cobra.Command{
		Use:   "man",
		Short: "write the manual pages",
		Args:  args,
		RunE: func(*cobra.Command, []string) error {
			pages, err := Pages(root, format)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(pages)) {
				if err := write(filepath.Join(dir, name), []byte(pages[name])); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "man", "`DIR` to write to")
	WordFlag(cmd.Flags(), &format, "format", "`FORM` of the pages: man or markdown", "man", "markdown")
	return cmd
}

// VersionCommand returns the command that prints the version of a program.
func VersionCommand(to io.Writer, program string, args cobra.PositionalArgs) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Long:  "Print the version, the commit it was built from, and the version of Go.",
		Args:  args,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(to, "%s %s%s, %s\n", program, outdir.Version, Revision(), runtime.Version())
			return err
		},
	}
}

// manFlag matches a flag in a manual page of cobra, with the tab before its
// text. Pages writes .TP instead, which indents all lines of that text.
var manFlag = regexp.MustCompile(`(?m)^(?:\.PP\n)?(\\fB-.*)\n\t`)

// referenceFile turns cobra's name of a page, "ibweave_gen_tree.md", into ours, "gen-tree.md".
func referenceFile(page string) string {
	_, rest, below := strings.Cut(strings.ReplaceAll(page, "_", " "), " ")
	if !below {
		return "README.md"
	}
	return strings.ReplaceAll(rest, " ", "-")
}

// Walk visits a command and all below it.
func Walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		Walk(sub, visit)
	}
}

// wrapped breaks text between words into lines of up to most bytes.
func wrapped(text string, most int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > most {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// The exit statuses of every command.
const (
	Clean       = 0
	Findings    = 1
	Usage       = 2
	Input       = 3
	Environment = 4
)

// FindingsNote is the annotation of a root command that explains exit status 1.
const FindingsNote = "findings"

// exitStatus returns the text on exit statuses for help texts and manual pages.
func exitStatus(c *cobra.Command) string {
	note, ok := c.Root().Annotations[FindingsNote]
	if !ok {
		note = "done, and there are findings at or above --fail-on, rules that the input leaves undecided, or differences; or the engine does not support this fabric"
	}
	return "  0  done and clean\n  1  " + note + `
  2  wrong usage
  3  input that cannot be read or is invalid; the message has file:line
  4  the environment lacks something, an input or output error, or interrupted
`
}
