// etcd, as its own project builds it. A program of ours, because the module that etcd itself is built from replaces
// its own parts by directories, which no other module may do.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
