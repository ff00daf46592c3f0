// Packs one program into a zip as provider mirrors hold it. Same program, same bytes: the time and the
// mode in it are fixed, because lock files can name the sum of the whole zip.
package main

import (
	"archive/zip"
	"log"
	"os"
	"time"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: pack PROGRAM NAME-INSIDE ZIP")
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func pack(program, name, target string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	file, err := os.Create(target)
	if err != nil {
		return err
	}
	archive := zip.NewWriter(file)
	header := &zip.FileHeader{
		Name:     name,
		Method:   zip.Deflate,
		Modified: time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC),
	}
	header.SetMode(0o755)
	inside, err := archive.CreateHeader(header)
	if err != nil {
		return err
	}
	if _, err := inside.Write(content); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return file.Close()
}
