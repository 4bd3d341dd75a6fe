package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "ibweave-page runs in the page of ibweave report --interactive, and nowhere else")
	os.Exit(2)
}
