"""The words in which people ask for something to be done, in the languages that many of them write
in, and the words for what it is done to.

Each line of a table is a class with its words, and goes on where the next begins with a space. A
word is listed in the forms of an order: that keeps nouns out without a grammar.
"""

_ORDERS = """
send send email mail message text write tell inform notify reply respond answer forward dm ping
 contact
  remind thank let ask report announce deliver confirm give drop shoot pass relay fire brief
 congratulate
 wish say update
 schick schicke schicken sende senden maile mailen schreib schreibe schreiben antworte antworten
  beantworte informiere informieren benachrichtige benachrichtigen frag frage fragen sag sagen
 gib leite
 weiterleiten teile mitteilen melde erinnere danke bedanke
  envía envíale envíales envíame envía enviar envia manda mándale mandar escribe escríbele
 escribir responde
  respóndele responder contesta avisa avísale informa dile diles reenvía reenviar pregunta
 pregúntale notifica
  envoie envoyer envoyez écris écrire écrivez réponds répondre répondez transmets transfère
 informe informer
 préviens prévenir demande dis rappelle remercie
  manda mandare invia inviare inviagli scrivi scrivere rispondi rispondere inoltra inoltrare
 informa avvisa
 chiedi comunica ricorda ringrazia
  envie enviar mande mandar escreva escrever responda responder avise encaminhe informe pergunte
 diga
 stuur sturen mail schrijf schrijven antwoord beantwoord vertel laat vraag meld zeg
 pošli poslat pošlete napiš napsat odpověz odpovědět přepošli informuj upozorni řekni oznam zeptej
 wyślij wysłać napisz napisać odpowiedz odpowiedzieć przekaż powiadom poinformuj zapytaj powiedz
 отправь отправить пошли послать напиши написать ответь ответить перешли сообщи спроси скажи
 skicka skriv svara meddela berätta fråga gönder yaz yanıtla bildir
post post publish tweet comment announce share message send reply write answer review put
 poste posten veröffentliche veröffentlichen kommentiere schreib schreibe stelle
  publica publicar comenta escribe anuncia publie publier poste commente écris pubblica
 pubblicare commenta
 scrivi publique publicar comente plaats publiceer reageer zveřejni napiš opublikuj skomentuj
 опубликуй опубликовать напиши прокомментируй publicera yayınla
share share grant invite give add permit let allow bring get onboard
 teile teilen freigeben gib lad lade einladen füg füge hinzufügen nimm
 comparte compartir invita invitar añade añádela añádelo añadir agrega agregar da dale
 partage partager partagez invite inviter ajoute ajouter donne
 condividi condividere invita invitare aggiungi aggiungere dai
 compartilhe compartilhar partilhe partilha convide convidar adicione adicionar dê
 deel delen nodig uitnodigen voeg geef sdílej sdílet pozvi pozvat přidej přidat
  udostępnij udostępnić zaproś zaprosić dodaj dodać поделись пригласи пригласить добавь добавить
 дай
 dela bjud paylaş davet ekle
pay pay transfer send return refund settle donate tip wire reimburse repay spend give
  überweise überweisen überweis zahl zahle zahlen bezahl bezahle bezahlen begleiche erstatte
 spende schick
 sende transfiere transferir paga pagar abona envía reembolsa devuelve
 vire virer paie payer paye règle régler rembourse transfère envoie verse
 paga pagare trasferisci trasferire bonifica versa rimborsa invia
 pague pagar transfira transferir reembolse envie
 betaal betalen maak overmaken overschrijf zaplať zaplatit převeď převést pošli uhraď
 przelej przelać zapłać zapłacić opłać wyślij переведи перевести заплати заплатить оплати оплатить
 betala överför öde gönder
create create jot add make schedule plan book put arrange organise organize file draft open raise
 register
  log note record write start enter compose block prepare generate set remind pencil slot reserve
 save
 erstelle erstellen erstell leg lege anlegen trag trage eintragen mach mache plane planen füg füge
 hinzufügen notiere richte schreib setz setze vereinbare
 crea crear añade añadir agrega agregar agenda agendar programa programar pon apunta haz anota
 crée créer ajoute ajouter planifie planifier note inscris mets fais programme organise
 crea creare aggiungi aggiungere pianifica metti segna fai organizza inserisci
 crie criar adicione adicionar agende agendar marque marcar faça anote coloque
  maak maken voeg toevoegen plan zet noteer vytvoř vytvořit přidej přidat naplánuj zapiš založ
 udělej dej
  utwórz utworzyć stwórz dodaj dodać zaplanuj zapisz zrób создай создать добавь добавить
 запланируй запиши
 сделай skapa lägg boka oluştur ekle
save save jot write store note log record append export copy put document draft keep create add fill
 collect
 list summarise summarize extend insert attach
  speicher speichere speichern schreib schreibe schreiben notiere ergänze ergänzen leg lege häng
 hänge füg
 füge guarda guardar escribe anota añade añadir agrega apunta
 enregistre enregistrer sauvegarde écris note ajoute ajouter complète
 salva salvare scrivi annota aggiungi guarde salve salvar escreva anote adicione
  bewaar sla schrijf noteer voeg ulož uložit zapiš napiš přidej doplň zapisz zapisać napisz dodaj
 dopisz
 сохрани сохранить запиши добавь допиши spara skriv kaydet yaz
update update change edit modify reschedule move rename set adjust correct fix replace mark label
 star tag
  archive flag complete close assign pin raise increase lower reduce extend postpone shift sort
 push
  unflag resolve tick put merge switch turn bump swap amend append bring
 reassign
 ändere ändern aktualisiere verschieb verschiebe verschieben verleg verlege korrigiere archiviere
  archivieren markiere markieren setz setze erhöhe senke schließ schließe benenne passe ersetze
 stell stelle
 füg füge ergänze sortiere
  cambia cambiar actualiza actualizar mueve mover modifica corrige archiva archivar marca marcar
 aplaza
 reprograma cierra sube baja ajusta añade
  change changer modifie modifier déplace déplacer décale décaler reporte corrige archive
 archiver marque
 mets ferme augmente ajuste renomme ajoute
  cambia cambiare aggiorna aggiornare sposta spostare modifica correggi archivia segna chiudi
 aumenta rinvia
 mude mudar altere alterar atualize atualizar mova corrija arquive marque feche adie remarque
 wijzig wijzigen verander verplaats verplaatsen verzet archiveer markeer sluit pas verhoog hernoem
 změň změnit přesuň přesunout uprav upravit archivuj označ zavři přejmenuj posuň oprav zvyš
 zmień zmienić przenieś przesuń przełóż zaktualizuj popraw zarchiwizuj oznacz zamknij
 измени изменить перенеси перенести обнови исправь архивируй отметь закрой ändra flytta uppdatera
 arkivera değiştir taşı güncelle
delete delete remove cancel clear drop unsubscribe kick revoke discard trash erase clean purge
 wipe throw
 bin scrap ditch ban boot expel
  lösch lösche löschen entfern entferne entfernen storniere stornieren kündige wirf sag streich
 streiche
 lösch absagen borra borrar elimina eliminar quita quitar cancela cancelar anula expulsa
 supprime supprimer supprimez efface effacer annule annuler retire retirer enlève
 cancella cancellare elimina eliminare rimuovi rimuovere annulla togli
 apague apagar elimine exclua excluir cancele cancelar remova
 verwijder verwijderen wis annuleer annuleren zeg smaž smazat odstraň odstranit zruš zrušit vyhoď
 usuń usunąć skasuj anuluj anulować wyrzuć удали удалить отмени отменить сотри убери
 radera avboka ta sil iptal
book book reserve order buy purchase rent get grab secure hire
 besorg besorge besorgen buch buche buchen
 reservier reserviere reservieren bestell bestelle bestellen kauf kaufe miete
 mieten
 reserva reservar compra alquila pide
 réserve réserver réservez commande loue achète
 prenota prenotare ordina noleggia compra reserve reservar alugue compre
 boek boeken reserveer reserveren huur bestel rezervuj rezervovat objednej zamluv kup
 zarezerwuj zarezerwować zamów kup wynajmij забронируй забронировать закажи купи арендуй
 boka beställ köp rezerve
run run execute start test build deploy merge push commit install launch führe starte teste baue
 ejecuta exécute lance esegui avvia execute rode voer spusť uruchom запусти kör
upload upload send put publish lade sube téléverse carica carregue nahraj prześlij загрузи
light leave put drop make do give take have hand place hinterlass hinterlasse mach mache gib laisse
 fais mets donne deja haz pon da lascia fai metti deixa deixe faça zanech nech dej udělej
 zostaw zrób daj оставь сделай maak geef laat lämna gör
"""
# Languages without spaces between words: these stand anywhere in a sentence.
_INSIDE = """
send 送って 送信 メールして 返信 連絡して 伝えて 書いて 发送 发给 发邮件 回复 转发 告诉 通知 写信
 發送 回覆
post 投稿 発表して 发布 评论
share 共有 招待 追加 分享 邀请 添加
pay 振り込 送金 支払 払って 转账 汇款 支付 付款 轉帳 汇给
create 作成 作って 追加 予定を入れ 登録 创建 新建 添加 安排 加入
save 保存 書き込 追記 メモして 保存 记录 写入
update 変更 更新 移動 アーカイブ 修正 延期 更改 修改 更新 移动 归档 推迟 改到
delete 削除 消して キャンセル 取り消 删除 取消 移除
book 予約 注文 预订 预约 订购 订一
run 実行 运行 执行
"""
# What only wants an answer: it ends what is done to the thing before.
_READS = """
read show look find check see list search fetch summarise summarize recommend review compare
 count tell
 explain describe verify open view know browse go analyse analyze translate
  lies zeig zeige schau such suche fasse prüf prüfe nenne finde lee muestra mira busca resume
 revisa dime
 lis montre regarde cherche résume vérifie leggi mostra guarda cerca riassumi controlla
  leia mostre veja procure resuma verifique lees toon kijk zoek controleer přečti ukaž podívej
 najdi shrň
 zkontroluj przeczytaj pokaż sprawdź znajdź podsumuj прочитай покажи посмотри найди проверь
"""
_OBJECTS = """
file file files document documents doc docs folder drive cloud report spreadsheet sheet notes
 note draft
  attachment list pdf datei dateien dokument ordner ablage laufwerk archivo archivos documento
 fichero unidad
 fichier fichiers document dossier cartella documento ficheiro arquivo bestand bestanden map
 soubor soubory dokument složka plik pliki dokument файл файлы документ диск диска
 ファイル 文書 文件 文档
event event events appointment appointments meeting meetings calendar schedule call lunch dinner
 invitation standup sync class session visit termin termine kalender besprechung treffen
 reunión reuniones cita citas calendario evento événement rendez-vous réunion calendrier agenda
 appuntamento riunione evento reunião compromisso calendário afspraak vergadering kalender
 schůzka schůzku kalendář událost událost spotkanie kalendarz wydarzenie встреча встречу календарь
 событие 予定 会議 カレンダー 会议 日历 日程
mail mail mails email emails e-mail newsletter newsletters letter inbox nachricht nachrichten
 correo
  correos mensaje courriel mail mails e-mails posta messaggio mensagem bericht e-mailu zpráva
 zprávu
 wiadomość письмо メール 邮件
chat channel channels slack message messages dm inbox chat kanal canal canales salon canale kanaal
 kanál kanał канал チャンネル 频道
money money payment payments transfer transfers invoice invoices bill bills rent transaction
 transactions
  order standing eur euro euros usd dollars account iban subscription überweisung rechnung miete
 konto
  dauerauftrag zahlung pago factura transferencia cuenta alquiler recibo virement facture loyer
 compte
  paiement bonifico fattura affitto conto pagamento transferência fatura conta huur rekening
 betaling
  platba fakturu faktura nájem účet przelew rachunek faktura czynsz konto платёж счёт перевод
 аренда
 振込 家賃 账单 房租
profile profile address street city user info details name phone adresse anschrift straße
 dirección
 calle dirección rue indirizzo endereço rua adres adresa ulice ulica adres адрес улица 住所 地址
credential password passwords credentials pin passwort kennwort contraseña passe password senha
 wachtwoord heslo hasło пароль パスワード 密码
hotel hotel hotels room stay accommodation zimmer habitación chambre camera quarto kamer pokoj
 pokój отель
 номер ホテル 酒店
restaurant restaurant restaurants cafe café bistro table dinner lunch tisch mesa tavolo ristorante
 restaurante
 tafel stůl
 stolik ресторан стол столик レストラン 餐厅
car car cars rental vehicle auto mietwagen coche voiture macchina carro wagen samochód машину
 車 汽车
flight flight flights plane flug vuelo vol volo voo vlucht let lot рейс 便 航班
contact contact contacts kontakt contacto contatto contato 連絡先 联系人
issue issue issues bug ticket tickets fehler
pull pull pr
page page webpage website site board web seite página pagina stránka strona страница
person user member members people team everyone everybody guest participant benutzer mitglied
 usuario
 utilisateur utente usuário gebruiker
"""
_LEADING = """
and then please also to you just kindly now i'd me or but next finally afterwards bitte und dann
 mir y luego
 por favor et puis e poi en dan a pak potem i и пожалуйста
"""
# Nouns as often as verbs: orders only where a sentence or its part begins.
_OFTEN_NOUNS = """
file email mail message text document note log order record comment label list copy post report
 draft
  schedule contact invoice plan test mark answer reply request archive review share change book
 transfer
  flag star sort cancel open start close set pin push clean check tag build launch update find
 pass ask
 invite bin boot ban brief wish fire slot block map save say give get let hire drop
  frage antworte plane miete programa reserva compra marca nota note marque réserve règle
 commande demande
  informe responda paga cambia marca ordina agenda haz transmets dis plan mail deel boka ta pas
 zeg reserve
 auto publica vire verse
"""
_DETERMINERS = """
the a an my his her our their its this that these those last latest new first second all any of
 in from
 your each every unread recent which what whose no next by with inbox for on about
  der die das den dem des ein eine einen meine meinen mein im vom el la los las un una mi mis del
 le les une
 mon ma mes du des au il lo gli uno mio mia del della o os um uma meu minha het een mijn
"""
_MANY = """
each every all both everyone everybody them these those any everything several
  alle alles allen jede jeden jedem jeder beide beiden sie todos todas cada ambos tous toutes
 chaque tutti
  tutte ogni todos todas cada elke iedereen beide všechny všem každý každému oba wszystkie
 wszystkim
 wszystkich każdy все всем всех каждый каждому alla bütün
"""
_MANY_INSIDE = "全部 全て すべて 全員 みんな 所有 每个 大家"
_PRONOUNS = """
it that this them these those so es das sie ihn lo la las los le les cela ça esso questo isso
 isto het dit
 dat to ho je go ich его это их
"""
_QUESTIONS = """
what who whom whose which when where why how did do does is are was were has have had am
  was wer wen wem wann wo warum wie welche welcher welches qué quién cuándo dónde cuánto cuántos
 cómo cuál
  que qui quand où combien quel quelle quels quelles pourquoi chi quando dove quanto quanti come
 quale
  quem onde quantos wie wat waar hoeveel hoe co kdo kdy kde kolik jak jaké który co kto kiedy
 gdzie ile
 что кто когда где сколько как какие
"""
_AND_THEN = """
and then please also und dann bitte y luego et puis ensuite e poi depois en dan a pak potom i
 potem и затем
"""
_TO_ME = "me us mir uns moi nous mi mij ons mně nám mnie nam мне нам"
# With "me" after them, these ask for an answer.
_TELLING = """
tell let give ask show say inform notify brief explain remind read sag sage gib frag frage erklär
 erkläre
 dime dile di dis dimmi diga řekni upozorni powiedz скажи сообщи vertel laat geef zeg berätta
"""


def _table(text: str) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    name = ""
    for line in text.strip("\n").splitlines():
        listed = line.split()
        if not line.startswith(" "):
            name, *listed = listed
        for word in listed:
            found.setdefault(word, set()).add(name)
    return {word: frozenset(names) for word, names in found.items()}


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


ORDERS = _table(_ORDERS)
INSIDE = _table(_INSIDE)
OBJECTS = _table(_OBJECTS)
OBJECTS_INSIDE = {word: names for word, names in OBJECTS.items() if not word.isascii()}
READS = _set(_READS)
LEADING = _set(_LEADING)
OFTEN_NOUNS = _set(_OFTEN_NOUNS)
DETERMINERS = _set(_DETERMINERS)
MANY = _set(_MANY)
MANY_INSIDE = tuple(_MANY_INSIDE.split())
PRONOUNS = _set(_PRONOUNS)
QUESTIONS = _set(_QUESTIONS)
AND_THEN = _set(_AND_THEN)
TO_ME = _set(_TO_ME)
TELLING = _set(_TELLING)
