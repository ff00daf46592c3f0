//! A plan as JSON on its way out, over a real connection: it breaks off where it was tampered with, it is
//! not read faster than it is taken, and it ends with whoever asked for it.

use sqlx::PgPool;
use stackship_domain::Sha256Digest;

use crate::json_output::{FRAME, HEADER, Output};
use crate::socket::{Head, Wire, positions};
use crate::v2::http::get_to_end;
use crate::world::until;

const SEALED_FRAME: usize = FRAME + 16;
/// What the server holds of a document beside what the kernel holds: the frame that is being opened, the
/// piece of the file that was read for it, the frames that the HTTP library has taken and not written yet.
const HELD_BYTES_MAX: usize = 16 * FRAME;

/// Bytes that are the same nowhere.
fn document(frames: usize) -> Vec<u8> {
    let mut document = Vec::with_capacity(frames * FRAME);
    for number in 0_u64.. {
        if document.len() == frames * FRAME {
            break;
        }
        document.extend_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    }
    document
}

async fn ask(output: &Output) -> (Wire, Head) {
    let (served, path) = (&output.served, output.path());
    let reader = &served.acme.reader.token;
    let mut wire = Wire::send(&served.url, "GET", &path, reader, "").await;
    let head = wire.head().await;
    (wire, head)
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_document_breaks_off_before_the_frame_that_was_tampered_with(pool: PgPool) {
    let document = document(40);
    let output = Output::new(pool, &document).await;
    let sealed = std::fs::read(&output.file).unwrap();
    for frame in [1, 20, 39] {
        let mut tampered = sealed.clone();
        tampered[HEADER + frame * SEALED_FRAME + 7] ^= 1;
        std::fs::write(&output.file, &tampered).unwrap();
        let (served, path) = (&output.served, output.path());
        let reader = &served.acme.reader.token;
        let mut wire = Wire::send(&served.url, "GET", &path, reader, "").await;
        // A connection that ends before anything of the answer was written is cut off as well.
        if let Some(head) = wire.head_if_any().await {
            assert_eq!((head.status, head.length), (200, document.len()));
        }
        let came = wire.rest().await;
        assert!(came.len() <= frame * FRAME, "{} bytes came", came.len());
        assert!(document.starts_with(&came));
        let url = format!("{}{path}", served.url);
        let read = get_to_end(&url, reader).await;
        assert!(read.is_err(), "a client takes it for complete");
    }
    std::fs::write(&output.file, &sealed).unwrap();
    let (wire, _) = ask(&output).await;
    assert_eq!(wire.rest().await, document);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_file_that_is_cut_while_it_is_read_ends_the_answer(pool: PgPool) {
    let output = Output::new(pool, &document(256)).await;
    let (wire, head) = ask(&output).await;
    // Far beyond what can have been read: the kernel takes only so much for a reader who does not read.
    let file = std::fs::File::options()
        .write(true)
        .open(&output.file)
        .unwrap();
    file.set_len((HEADER + 250 * SEALED_FRAME) as u64).unwrap();
    drop(file);
    let came = wire.rest().await;
    assert!(came.len() < head.length, "{} bytes came", came.len());
    until("the file is closed", async || {
        positions(&output.file).is_empty()
    })
    .await;
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_slow_reader_makes_the_server_wait(pool: PgPool) {
    let document = document(256);
    let output = Output::new(pool, &document).await;
    let (mut slow, head) = ask(&output).await;
    assert_eq!(head.length, document.len());
    let mut taken = slow.take(1000).await;
    // Long enough for everything to be read: another reader takes all of it meanwhile, twice.
    for _ in 0..2 {
        let (fast, _) = ask(&output).await;
        assert!(fast.rest().await == document);
        until("only the slow reader is left", async || {
            positions(&output.file).len() == 1
        })
        .await;
        let (unread, unsent) = slow.in_kernel();
        let read = positions(&output.file)[0];
        let gone = taken.len() + unread + unsent;
        assert!(
            read <= gone + HELD_BYTES_MAX + HEADER + read / FRAME * 16,
            "{read} bytes were read of the file, and {gone} are taken or in the kernel"
        );
        assert!(
            read < document.len() / 2,
            "the kernel took {unread} and {unsent}"
        );
        taken.extend(slow.take(FRAME).await);
    }
    taken.extend(slow.rest().await);
    assert_eq!(Sha256Digest::of(&taken), output.stored.sha256);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nothing_is_left_of_a_reader_who_went_away(pool: PgPool) {
    let output = Output::new(pool, &document(256)).await;
    let (mut wire, _) = ask(&output).await;
    wire.take(3 * FRAME).await;
    assert_eq!(positions(&output.file).len(), 1, "the server is at it");
    drop(wire);
    until("the file is closed", async || {
        positions(&output.file).is_empty()
    })
    .await;
}
