package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile/outdir"
)

// version is the release; the revision comes from the build.
const version = outdir.Version

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Long:  "Print the version, the commit it was built from, and the version of Go.",
		Args:  a.noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.stdout, "ibweave %s%s, %s\n", version, cli.Revision(), runtime.Version())
			return err
		},
	}
}

// manCommand writes the manual pages, and the reference.
func (a *app) manCommand(root *cobra.Command) *cobra.Command {
	var dir, format string
	cmd := &cobra.Command{
		Use:   "man",
		Short: "write the manual pages",
		Long: `Write a page for each command and each help topic into a directory: manual
pages, to be read with man -l FILE, or Markdown, as in docs/reference.`,
		Example: `  ibweave man -o man
  man -l man/ibweave-compile.1
  ibweave man --format markdown -o reference`,
		Args: a.noArgs,
		RunE: func(*cobra.Command, []string) error {
			pages, err := cli.Pages(root, format)
			if err != nil {
				return &usageError{err}
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(pages)) {
				if err := a.writeOutput(filepath.Join(dir, name), []byte(pages[name])); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "man", "`DIR` to write to")
	cmd.Flags().StringVar(&format, "format", "man", "`FORM` of the pages: man or markdown")
	return cmd
}
