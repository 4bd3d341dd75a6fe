package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/sminterface/dump"
)

// formsCommand is the help topic about the forms of text: the table of package dump.
func (a *app) formsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "forms",
		Short: "the forms of text that commands read",
		Long: `Files are recognized by their content, whatever their names: text of these forms,
also compressed with zstd or gzip, wherever a file of the kind is asked for, and in
folders and archives of dumps. Of several topologies in a folder, the first in this
table is taken. What a form lacks is left out of the fabric, or inferred as it says
here; check says what it cannot decide without it.
` + formsText(),
	}
}

// formsText is the table of forms as items of a help text.
func formsText() string {
	var b strings.Builder
	for _, kind := range dump.Kinds() {
		if kind == dump.HelpsOpenSM {
			continue
		}
		b.WriteString("\n" + string(kind) + ":\n")
		for _, form := range dump.Forms(kind) {
			info := form.Info()
			fmt.Fprintf(&b, "  %s  from %s", info.Name, strings.ReplaceAll(info.From, "`", ""))
			if info.Lacks != "" {
				b.WriteString("; lacks " + strings.ReplaceAll(info.Lacks, "`", ""))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
