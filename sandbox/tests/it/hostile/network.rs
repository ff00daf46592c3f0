use std::time::Duration;

use stackship_sandbox::{Network, SandboxDriver};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{finish, launch, output, shell, spec, world};

#[tokio::test]
async fn the_host_and_the_metadata_address_are_unreachable() {
    let v4 = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let v6 = TcpListener::bind("[::1]:0").await.unwrap();
    TcpStream::connect(v4.local_addr().unwrap())
        .await
        .expect("the control reaches it");
    let (four, six) = (v4.local_addr().unwrap(), v6.local_addr().unwrap());
    let seen = output(&format!(
        "for a in {four} {six} 169.254.169.254:80 10.0.0.1:80 1.1.1.1:443 127.0.0.1:8080 127.0.0.1:3128; do \
         curl -sg --noproxy '*' --max-time 5 http://$a/; echo $?; done"
    ))
    .await;
    assert_eq!(seen, "7\n".repeat(7), "curl's 7 is: cannot connect");
}

#[tokio::test]
async fn there_is_only_a_loopback_interface_and_no_name_resolution() {
    let seen = output(
        "sed 1,2d /proc/net/dev | cut -d: -f1 | xargs; sed 1d /proc/net/route; \
         curl -s --max-time 5 http://example.com/; echo $?",
    )
    .await;
    assert_eq!(seen, "lo\n6\n", "curl's 6 is: cannot resolve");
}

#[tokio::test]
async fn abstract_sockets_of_the_host_are_not_reachable() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
    let name = format!("canary-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    UnixStream::connect_addr(&address).expect("the control reaches it");
    let seen = output(&format!(
        "curl -s --abstract-unix-socket {name} --max-time 5 http://x/; echo $?"
    ))
    .await;
    assert_eq!(seen, "7\n");
}

#[tokio::test]
async fn the_gateway_is_served_from_outside() {
    let mut spec = spec(vec![shell(
        "one",
        "curl -s --max-time 20 http://127.0.0.1:8080/api/v2/ping",
    )]);
    spec.network = Network {
        gateway: true,
        egress: false,
    };
    let mut sandbox = world().driver.launch(spec).await.unwrap();
    assert!(sandbox.take_egress().is_none());
    let gateway = sandbox.take_gateway().unwrap();
    assert!(sandbox.take_gateway().is_none());
    let serving = tokio::spawn(async move {
        let (mut stream, peer) = gateway.accept().await.unwrap();
        assert!(peer.ip().is_loopback());
        let mut request = vec![0; 1024];
        let read = stream.read(&mut request).await.unwrap();
        assert!(request[..read].starts_with(b"GET /api/v2/ping "));
        stream
            .write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\npong")
            .await
            .unwrap();
    });
    let ran = finish(sandbox).await;
    serving.await.unwrap();
    assert_eq!(ran.stdout, "pong");
}

#[tokio::test]
async fn two_sandboxes_have_a_network_each() {
    let mut first = shell("one", "curl -s --max-time 20 http://127.0.0.1:8080/");
    first.time_limit = Duration::from_secs(30);
    let mut with = spec(vec![first]);
    with.network = Network {
        gateway: true,
        egress: false,
    };
    let mut sandbox = launch(with).await;
    let gateway = sandbox.take_gateway().unwrap();
    let seen = output("curl -s --max-time 5 http://127.0.0.1:8080/; echo $?").await;
    assert_eq!(seen, "7\n", "the other one's gateway is not here");
    drop(gateway);
    finish(sandbox).await;
}
